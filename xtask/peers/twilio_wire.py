"""Requests of the Twilio worker, and the sandbox's answers, against Twilio's OpenAPI description.

Arguments: closed description, record before Prism, record behind it, URL of Prism, SQL of the example application.
"""

import base64
import json
import pathlib
import sys
import urllib.error
import urllib.request
import uuid

from cases import case, eventually, finish, same
from form_check import Description
from product import ORGANIZATION, SANDBOX, database, get, number, wait_ready

DESCRIPTION, BEFORE, BEHIND, PRISM, SQL = Description(sys.argv[1]), *sys.argv[2:6]
#: Where Prism's own answers say that they are its own.
REFUSED = "https://stoplight.io/prism/errors#"
CONVERSATION, MEMBERS = "/v1/Conversations/{Sid}", "/v1/Conversations/{ConversationSid}/Participants"
#: What the worker calls.
CALLED = {
    ("post", "/v1/Conversations"),
    ("get", CONVERSATION),
    ("post", CONVERSATION),
    ("delete", CONVERSATION),
    ("get", MEMBERS),
    ("post", MEMBERS),
    ("delete", f"{MEMBERS}/{{Sid}}"),
}
#: More than fit on one page of Twilio's.
CROWD = 103
PROJECT = uuid.uuid4()


def recorded(file):
    with open(file, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def endpoint(line):
    return line["method"], DESCRIPTION.template(line["method"], line["path"])


def call(method, path, form=None, **headers):
    """Status and body of a request to Prism itself."""
    head = {"authorization": "Basic " + base64.b64encode(f"SK{'e' * 32}:peers".encode()).decode()}
    head |= {name.replace("_", "-"): value for name, value in headers.items()}
    body = None if form is None else form.encode()
    if body is not None:
        head.setdefault("content-type", "application/x-www-form-urlencoded")
    request = urllib.request.Request(PRISM + path, body, {k: v for k, v in head.items() if v}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def lie():
    """The first write of each kind is done and reported as a 500, so that the worker has to look; some are refused."""

    def rule(kind, fault):
        return {"match": {"provider": "twilio", "kind": kind}, "when": {"first": 1}, "fault": fault}

    fault = {"kind": "stored_error", "status": 500, "applied": True}
    writes = ["conversation.create", "conversation.update", "conversation.delete"]
    rules = [rule(kind, fault) for kind in [*writes, "participant.add", "participant.remove"]]
    rules.append(rule("participant.list", {"kind": "rate_limited", "reason": "x"}))
    head = {"content-type": "application/json"}
    request = urllib.request.Request(f"{SANDBOX}/faults", json.dumps(rules).encode(), head)
    urllib.request.urlopen(request, timeout=10).close()


def install():
    for part in sorted(pathlib.Path(SQL).glob("*.sql")):
        database.run(part.read_text(encoding="utf-8"))
    database.run("insert into chat.organization values (:o, 'peers')", o=ORGANIZATION)
    database.run("insert into chat.project values (:p, :o, 'peers')", p=PROJECT, o=ORGANIZATION)


def register(who):
    member = uuid.uuid4()
    sql = "insert into chat.member values (:m, :p, cast(:who as jsonb))"
    database.run(sql, m=member, p=PROJECT, who=json.dumps(who))
    return member


def open_conversation(name, members):
    conversation = uuid.uuid4()
    database.run("start transaction")
    database.run("select chat.open_conversation(:c, :p, :name)", c=conversation, p=PROJECT, name=name)
    for member in members:
        database.run("select chat.add_member(:c, :m)", c=conversation, m=member)
    database.run("commit")
    return conversation


def rest():
    left = "select (select count(*) from backline.operation) + (select count(*) from backline.intake)"
    eventually("everything to end", lambda: number(left) == 0, limit=90)


def run():
    wait_ready()
    lie()
    install()
    chat = lambda name: register({"chat": {"identity": name}})
    phone = register({"messaging": {"address": "+15558675310", "proxy_address": "+15017122661"}})
    one, two, odd = chat("one"), chat("two"), chat("rené & co/100 %+@x.example")
    crowd = [chat(f"crowd-{n}") for n in range(CROWD)]
    talk = open_conversation("rent & more = 100 % ü", [one, two, odd, phone])
    closed, archived = (open_conversation(name, [one]) for name in ("closed", "archived"))
    # One deletion is told that it failed, and the other that it did not.
    deleted = [open_conversation("deleted", [one]) for _ in range(2)]
    crowded = open_conversation("crowded", crowd)
    rest()
    for member in (two, odd):
        database.run("select chat.remove_member(:c, :m)", c=talk, m=member)
    database.run("select chat.close_conversation(:c)", c=closed)
    database.run("select chat.archive_conversation(:c)", c=archived)
    for conversation in deleted:
        database.run("select chat.delete_conversation(:c)", c=conversation)
    rest()
    # Again about what is so already: read and found, or answered by a fact.
    for kind in ("participants", "close"):
        for conversation in (talk, closed, crowded):
            sql = "select chat.owe(:kind, :c, :o, :p)"
            database.run(sql, kind=f"twilio.{kind}", c=conversation, o=ORGANIZATION, p=PROJECT)
    rest()
    report = json.loads(get(f"{SANDBOX}/twilio"))
    rooms = {room["unique_name"]: room for room in report["conversations"]}
    same("conversations", set(rooms), {str(one) for one in (talk, closed, archived, crowded)})
    who = lambda room: {person["identity"] or person["address"] for person in room["participants"]}
    same("people", who(rooms[str(talk)]), {"one", "+15558675310"})
    same("crowd", who(rooms[str(crowded)]), {f"crowd-{n}" for n in range(CROWD)})
    same("states", [rooms[str(one)]["states"] for one in (closed, archived)], [["active", "closed"]] * 2)
    same("outcomes", number("select count(*) from backline.operation_history where outcome = 'rejected'"), 0)


def requests():
    before, behind = recorded(BEFORE), recorded(BEHIND)
    refused = [line for line in before if str((line["reply"] or {}).get("type")).startswith(REFUSED)]
    same("refused by Prism", refused, [])
    same("calls", {endpoint(line) for line in before}, CALLED)
    # Prism drops what a form's schema does not name; the second judge does not.
    wrong = {}
    for line in before:
        if line["method"] != "delete":
            text = line["query"] if line["method"] == "get" else line["body"]
            wrong.setdefault(str(endpoint(line)), []).extend(DESCRIPTION.problems(line["method"], line["path"], text))
    same("problems", {name: problems for name, problems in wrong.items() if problems}, {})
    seen = lambda lines: sorted((one["method"], one["path"], one["query"], one["body"]) for one in lines)
    same("forms as Prism passed them on", len(seen(behind)), len(seen(before)))
    assert any("PageToken" in line["query"] for line in before), "no second page was asked for"


def answers():
    """Prism has passed every answer on, so each 2xx was of Twilio's description."""
    before = recorded(BEFORE)
    good = {endpoint(line) for line in before if line["status"] in (200, 201, 204)}
    same("calls with a good answer", good, CALLED)
    statuses = {line["status"] for line in before}
    assert {429, 500} <= statuses, f"only {statuses} were answered"
    errors = [line["reply"] for line in before if line["status"] >= 400]
    for reply in errors:
        same("error envelope", set(reply), {"code", "message", "more_info", "status"})


def envelopes():
    for line in recorded(BEFORE):
        assert {"authorization", "x-backline-operation"} <= set(line["headers"]), line["headers"]
        wanted = "application/x-www-form-urlencoded" if line["method"] == "post" else None
        same(f"content type of {line['method']}", line["content_type"], wanted)


def wrong_requests():
    """Prism itself: each of these is refused, and nothing of it reaches who would answer."""
    status, made = call("POST", "/v1/Conversations", "UniqueName=wrong")
    same("a right request", (status, made["unique_name"]), (201, "wrong"))
    reached = len(recorded(BEHIND))
    conversations, one = "/v1/Conversations", "/v1/Conversations/wrong"
    spoiled = {
        "required": call("POST", f"{one}/Webhooks", "Configuration.Url=x"),
        "type": call("GET", f"{conversations}?PageSize=many"),
        "maximum": call("GET", f"{one}/Participants?PageSize=1000"),
        "enum": call("POST", one, "State=open"),
        "minLength": call("POST", f"{one}/Participants", "Identity=x&RoleSid=RL12"),
        "pattern": call("POST", conversations, f"MessagingServiceSid=CH{'0' * 32}"),
        "format": call("POST", conversations, "DateCreated=yesterday"),
        "header": call("DELETE", one, x_twilio_webhook_enabled="perhaps"),
        "415": call("POST", conversations, '{"UniqueName": "x"}', content_type="application/json"),
    }
    for name, (status, problem) in spoiled.items():
        same(f"{name}: status", status, 422)
        found = problem["validation"]
        told = [str(one["code"]) for one in found] + [one.get("location", [""])[0] for one in found]
        assert name in told, f"{name}: {problem}"
    same("no credentials", call("GET", one, authorization="")[0], 401)
    same("no such method", call("PUT", one, "State=closed")[0], 405)
    same("reached the sandbox", len(recorded(BEHIND)), reached)


def unknown_property():
    """Prism drops it unread, so the description's second judge refuses it, and so does the sandbox."""
    whole = next(line["body"] for line in recorded(BEFORE) if endpoint(line) == ("post", MEMBERS))
    path = "/v1/Conversations/wrong/Participants"
    same("whole", DESCRIPTION.problems("post", path, whole), [])
    for form in (f"{whole}&Surprise=1", whole.replace("Identity=", "identity=")):
        problems = DESCRIPTION.problems("post", path, form)
        assert any("was unexpected" in problem for problem in problems), problems
    problems = DESCRIPTION.problems("get", path, "PageSize=5&Order=asc")
    assert any("'Order' was unexpected" in problem for problem in problems), problems
    status, reply = call("POST", path, "Identity=x&Surprise=1")
    same("sandbox", (status, reply["code"]), (400, 20001))


def wrong_answers():
    """Prism on the other side: a right answer passes, the same one spoiled does not."""
    path = "/v1/Conversations/wrong"
    same("whole", call("GET", path)[0], 200)
    added = call("POST", f"{path}/Participants", "Identity=x", x_peers_spoil='{"sid": "MB12"}')
    spoils = ({"state": "open"}, {"sid": "CH12"}, {"surprise": 1}, {"friendly_name": 7}, {"date_created": "now"})
    for status, problem in [added, *(call("GET", path, x_peers_spoil=json.dumps(spoil)) for spoil in spoils)]:
        same("status", status, 500)
        assert problem["type"].startswith(REFUSED) and problem["validation"], problem


case("conversations of each kind converge, each write looked for once", run)
case("requests are what Twilio describes", requests)
case("the sandbox's answers are what Twilio describes", answers)
case("credentials, operations and content types", envelopes)
case("Prism refuses wrong requests", wrong_requests)
case("an unknown property is refused", unknown_property)
case("Prism refuses wrong answers", wrong_answers)
finish()
