"""Stripe's form-encoded requests against Stripe's OpenAPI description."""

import json
import re
import urllib.parse

from jsonschema import Draft7Validator


def parse(form):
    """Bracket names as nested objects: `a[b]=c` is {"a": {"b": "c"}}."""
    root = {}
    for name, value in urllib.parse.parse_qsl(form, keep_blank_values=True, strict_parsing=bool(form)):
        first, *inner = [part.rstrip("]") for part in name.split("[")]
        place = root
        for part, after in zip([first, *inner], inner, strict=False):
            place = place.setdefault(part, {})
            assert isinstance(place, dict), f"{name} is a value and an object"
        last = inner[-1] if inner else first
        place[last or str(len(place))] = value
    return root


def typed(value, schema):
    """Text as the type that its schema asks for, where it can be read as one; else text, for the validator to refuse."""
    for one in schema.get("anyOf", [schema]):
        kind = one.get("type")
        if isinstance(value, dict) and kind == "array":
            entries = sorted(value.items(), key=lambda entry: (len(entry[0]), entry[0]))
            return [typed(entry, one.get("items", {})) for _, entry in entries]
        if isinstance(value, dict) and kind == "object":
            known, others = one.get("properties", {}), one.get("additionalProperties")
            others = others if isinstance(others, dict) else {}
            return {name: typed(entry, known.get(name, others)) for name, entry in value.items()}
        if isinstance(value, str) and kind == "integer" and re.fullmatch(r"-?\d+", value):
            return int(value)
        if isinstance(value, str) and kind == "number" and re.fullmatch(r"-?\d+(\.\d+)?", value):
            return float(value)
        if isinstance(value, str) and kind == "boolean" and value in ("true", "false"):
            return value == "true"
    return value


def closed(schema):
    """The same schema with every object refusing what it does not name: Stripe answers `parameter_unknown`."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(value) for name, value in schema.items() if name != "enum"}
    inner |= {"enum": schema["enum"]} if "enum" in schema else {}
    if inner.get("type") == "object" and "properties" in inner and "additionalProperties" not in inner:
        inner["additionalProperties"] = False
    return inner


class Description:
    """Stripe's own description of its API."""

    def __init__(self, file):
        with open(file, encoding="utf-8") as text:
            self.paths = json.load(text)["paths"]

    def template(self, method, path):
        """The described path behind a concrete one; a literal path goes before one with parameters."""
        found = [
            template
            for template in self.paths
            if method in self.paths[template] and re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", template), path)
        ]
        assert found, f"Stripe has no {method} {path}"
        return min(found, key=lambda template: template.count("{"))

    def problems(self, method, path, form):
        """What Stripe would not take, each with its place."""
        endpoint = self.paths[self.template(method, path)][method]
        if method == "get":
            inputs = [one for one in endpoint.get("parameters", []) if one["in"] == "query"]
            schema = {"type": "object", "properties": {one["name"]: one["schema"] for one in inputs}}
            schema["required"] = [one["name"] for one in inputs if one.get("required")]
        else:
            schema = endpoint["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"]
        schema = closed(schema)
        errors = Draft7Validator(schema).iter_errors(typed(parse(form), schema))
        return [f"{'/'.join(map(str, error.absolute_path)) or '-'}: {error.message}" for error in errors]
