"""microburst between relay, payments worker and Pub/Sub. Argument: base URL of its control pages."""

import json
import sys
from collections import Counter

from cases import case, eventually, finish, same
from product import (
    authorize,
    database,
    get,
    ledger,
    money,
    number,
    published,
    settled,
    submissions,
    wait_ready,
    wait_settled,
)

CONTROL = sys.argv[1]
PAYMENTS = 30


def payments():
    wait_ready()
    for n in range(PAYMENTS):
        authorize(f"p{n}", {"type": "transfer", "destination": "acct_peer", "amount": money(1000 + n)})
    wait_settled(PAYMENTS, limit=120)
    same("settled", settled(), PAYMENTS)
    eventually("the outbox to empty", lambda: number("select count(*) from backline.outbox") == 0)


def all_published():
    """Authorizations, submissions and settlements: what the outbox says, and what the broker itself accepted."""
    said = {str(row[0]) for row in database.run("select id from backline.outbox_published")}
    same("events", len(said), 3 * PAYMENTS)
    accepted = Counter(line["attributes"]["ce-id"] for line in published())
    same("never accepted", said - set(accepted), set())
    same("accepted, never emitted", set(accepted) - said, set())
    # The publish whose reply was lost: its events are there twice, and nothing else is there for it.
    assert max(accepted.values()) >= 2, "the lost reply had nothing behind it"
    bodies = {}
    for line in published():
        bodies.setdefault(line["attributes"]["ce-id"], set()).add(line["data_sha256"])
    same("events with two bodies", [id for id, hashes in bodies.items() if len(hashes) > 1], [])


def applied_once():
    operations, _ = ledger()
    same("operations", set(operations), set(submissions()))
    same("not applied once", {id: entry for id, entry in operations.items() if entry["applied"] != 1}, {})
    same("operations per payment", len(operations), PAYMENTS)


def fired():
    """The audit log of the fault proxy, with what became of each fault on the wire."""
    events = json.loads(get(f"{CONTROL}/_microburst/fired?limit=1000"))
    notes = Counter((event["operation"].rsplit("/", 1)[1], event["note"]) for event in events)
    wanted = {
        ("publish", "trailers-only grpc-status=14"): 2,
        ("publish", "cut_reply: link aborted mid-reply"): 1,
        ("streamingpull", "trailers-only grpc-status=14"): 1,
        ("streamingpull", "partial_messages: 2 relayed then RST_STREAM"): 1,
        ("streamingpull", "partial_messages: 3 relayed then grpc-status=13"): 1,
    }
    same("faults", dict(notes), wanted)


case("payments settle", payments)
case("every event published", all_published)
case("each payment applied once", applied_once)
case("the faults fired: publish refused twice, reply lost, streams refused and cut", fired)
finish()
