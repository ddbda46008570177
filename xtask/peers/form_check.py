"""Form-encoded requests against a provider's own OpenAPI description."""

import json
import re
import urllib.parse

from jsonschema import Draft7Validator


def parse(form):
    """Bracket names as nested objects: `a[b]=c` is {"a": {"b": "c"}}."""
    root = {}
    for name, value in urllib.parse.parse_qsl(form, keep_blank_values=True, strict_parsing=bool(form)):
        *outer, last = [part.rstrip("]") for part in name.split("[")]
        place = root
        for part in outer:
            place = place.setdefault(part, {})
            assert isinstance(place, dict), f"{name} is a value and an object"
        place[last or str(len(place))] = value
    return root


def typed(value, schema):
    """Text as the type that its schema asks for; text that cannot be read as one stays, for the validator to refuse."""
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
    """The same schema with every object refusing what it does not name."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(value) for name, value in schema.items()}
    if inner.get("type") == "object" and "properties" in inner and "additionalProperties" not in inner:
        inner["additionalProperties"] = False
    return inner


def plain(schema):
    """OpenAPI's `nullable` in JSON Schema's words."""
    if isinstance(schema, list):
        return [plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: plain(value) for name, value in schema.items()}
    return {"anyOf": [{"type": "null"}, inner]} if schema.get("nullable") is True else inner


class Description:
    """A provider's own description of its API."""

    def __init__(self, file):
        with open(file, encoding="utf-8") as text:
            whole = json.load(text)
        self.paths, self.components = whole["paths"], plain(whole["components"])

    def template(self, method, path):
        """The described path behind a concrete one; a literal path goes before one with parameters."""
        found = [
            template
            for template in self.paths
            if method in self.paths[template] and re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", template), path)
        ]
        assert found, f"there is no {method} {path}"
        return min(found, key=lambda template: template.count("{"))

    def problems(self, method, path, form):
        """What the provider would not take, each with its place."""
        endpoint = self.paths[self.template(method, path)][method]
        if method == "get":
            inputs = [one for one in endpoint.get("parameters", []) if one["in"] == "query"]
            schema = {"type": "object", "properties": {one["name"]: one["schema"] for one in inputs}}
            schema["required"] = [one["name"] for one in inputs if one.get("required")]
        else:
            schema = endpoint["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"]
        schema = closed(schema)
        # References are read from the root of the document.
        whole = {"allOf": [schema], "components": self.components}
        return told(Draft7Validator(whole).iter_errors(typed(parse(form), schema)))

    def answer_problems(self, method, path, status, answer):
        """What the provider would not say, each with its place. Fields that are left out or added are not problems."""
        answers = self.paths[self.template(method, path)][method]["responses"]
        described = answers.get(str(status), answers["default"])
        schema = plain(described["content"]["application/json"]["schema"])
        # References are read from the root of the document.
        return told(Draft7Validator({"allOf": [schema], "components": self.components}).iter_errors(answer))


def told(errors):
    return [f"{'/'.join(map(str, error.absolute_path)) or '-'}: {error.message[:300]}" for error in errors]
