"""Drives the product as an application does, by plain SQL, and reads what became of it."""

import json
import os
import urllib.error
import urllib.parse
import urllib.request
import uuid

import pg8000.native

from cases import eventually

EMULATOR, SANDBOX = os.environ["PEERS_EMULATOR"], os.environ["PEERS_SANDBOX"]
ORGANIZATION = uuid.uuid4()

_at = urllib.parse.urlsplit(os.environ["PEERS_DATABASE"])
database = pg8000.native.Connection(_at.username, host=_at.hostname, port=_at.port, database=_at.path[1:])


def get(url):
    """Text of a page."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def wait_ready():
    """Until relay and worker say that they are ready."""

    def ready(url):
        try:
            return bool(get(url)) or True
        except urllib.error.URLError:
            return False

    for url in os.environ["PEERS_READY"].split():
        eventually(url, lambda: ready(url), limit=60)


def emit(event_type, aggregate, payload):
    """Commits one event; returns its id as text."""
    sql = "select backline.emit_event(:type, :organization, :organization, 'payment', :aggregate, cast(:payload as jsonb))"
    rows = database.run(
        sql, type=event_type, organization=ORGANIZATION, aggregate=aggregate, payload=json.dumps(payload)
    )
    return str(rows[0][0])


def authorize(payment, instruction):
    """An authorized payment."""
    payload = {"payment_id": payment, "authorization": "peers", "instruction": instruction}
    return emit("PaymentAuthorized", payment, payload)


def money(minor, currency="usd"):
    return {"minor": minor, "currency": currency}


def number(sql):
    return database.run(sql)[0][0]


def settled():
    return number(
        "select count(*) from backline.operation_history where kind = 'stripe.settlement' and outcome = 'succeeded'"
    )


def wait_settled(count, limit=60):
    """Until so many payments are settled and nothing is left to do."""
    eventually(f"{count} settlements", lambda: settled() >= count, limit)
    eventually("open operations to end", lambda: number("select count(*) from backline.operation") == 0, limit)


def submissions():
    """Operation id -> (kind, outcome) of every finished submission."""
    sql = "select id, kind, outcome from backline.operation_history where kind <> 'stripe.settlement'"
    return {str(row[0]): (row[1], row[2]) for row in database.run(sql)}


def ledger():
    """What the provider applied, by operation id; and its sums."""
    report = json.loads(get(f"{SANDBOX}/ledger"))
    return report["operations"], report


def published():
    """What the broker accepted, in order."""
    return [json.loads(line) for line in get(f"{EMULATOR}/log").splitlines()]
