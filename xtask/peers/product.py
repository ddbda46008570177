"""Drives the product as an application does, by plain SQL, and reads what became of it."""

import json
import os
import urllib.parse
import urllib.request
import uuid

import pg8000.native

from cases import eventually

EMULATOR, SANDBOX = os.environ["PEERS_EMULATOR"], os.environ["PEERS_SANDBOX"]
ORGANIZATION = uuid.uuid4()

_at = urllib.parse.urlsplit(os.environ["PEERS_DATABASE"])
database = pg8000.native.Connection(_at.username, host=_at.hostname, port=_at.port, database=_at.path[1:])


def get(url, limit=10):
    """Text of a page, waiting at most `limit` seconds for it."""
    with urllib.request.urlopen(url, timeout=limit) as answer:
        return answer.read().decode()


def wait_ready():
    """Until relay and worker say that they are ready."""

    def ready(url):
        try:
            get(url)
        except OSError:
            return False
        return True

    urls = os.environ["PEERS_READY"].split()
    eventually(f"{urls} to be ready", lambda: all(map(ready, urls)), limit=60)


def emit(event_type, aggregate, payload):
    """Commits one event; returns its id as text."""
    sql = """select backline.emit_event(:type, :organization, :organization, 'payment', :aggregate,
                 cast(:payload as jsonb))"""
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
    """First column of the first row; None when there is no row."""
    rows = database.run(sql)
    return rows[0][0] if rows else None


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
