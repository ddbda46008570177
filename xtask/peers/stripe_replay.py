"""Idempotency keys: stripe-stateful-mock and the sandbox asked the same, side by side. Arguments: their base URLs.

The mock knows charges, refunds and customers; the sandbox knows payment intents, refunds and transfers. What is
compared is what a key does: statuses, the replay header, the error's type, and whether it is the same object again.
"""

import json
import sys
import urllib.error
import urllib.parse
import urllib.request
import uuid
from dataclasses import dataclass

from cases import case, eventually, finish, same

MOCK, SANDBOX = sys.argv[1:3]


#: The mock has the type of 2020 for 429; today's API reference has no such type, so both count as this.
LIMITED = "rate limited"


@dataclass
class Answer:
    status: int
    replayed: str | None
    error: str | None
    id: str | None
    body: bytes

    def about_the_key(self):
        return self.status, self.replayed, LIMITED if self.status == 429 else self.error


def post(base, path, body, key=None, account=None, credential="sk_test_peers"):
    request = urllib.request.Request(base + path, urllib.parse.urlencode(body).encode(), method="POST")
    head = {"idempotency-key": key, "stripe-account": account, "authorization": credential and f"Bearer {credential}"}
    for name, value in head.items():
        if value:
            request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            status, headers, text = answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as refused:
        status, headers, text = refused.code, refused.headers, refused.read()
    found = json.loads(text)
    return Answer(status, headers["idempotent-replayed"], found.get("error", {}).get("type"), found.get("id"), text)


class Mock:
    """Calls of the mock, by what they mean."""

    def charge(self, key, amount=2000, outcome="visa", **who):
        sources = {"declined": "tok_chargeDeclinedInsufficientFunds"}
        body = {"amount": amount, "currency": "usd", "source": sources.get(outcome, f"tok_{outcome}")}
        return post(MOCK, "/v1/charges", body, key, **who)

    def failing(self, status, key):
        """A call that fails in this way once, by a chain of the mock's tokens: the same bytes each time."""
        outcome = f"{status}|tok_visa|{key}"
        return lambda: self.charge(key, outcome=outcome)

    def refund(self, charge, key, amount=500):
        return post(MOCK, "/v1/refunds", {"charge": charge.id, "amount": amount}, key)

    def plain(self, key, text="of March"):
        return post(MOCK, "/v1/customers", {"description": text}, key)

    def incomplete(self, key):
        return post(MOCK, "/v1/charges", {"currency": "usd", "source": "tok_visa"}, key)

    def accounts(self):
        return [post(MOCK, "/v1/accounts", {"type": "custom"}).id for _ in range(2)]


class Sandbox:
    """The same of the sandbox."""

    def charge(self, key, amount=2000, outcome="visa", **who):
        methods = {"visa": "pm_card_visa", "declined": "pm_card_chargeDeclinedInsufficientFunds"}
        body = {"amount": amount, "currency": "usd", "confirm": "true", "payment_method": methods[outcome]}
        return post(SANDBOX, "/v1/payment_intents", body, key, **who)

    def failing(self, status, key):
        faults = {429: {"kind": "rate_limited", "reason": "global-rate"}, 500: {"kind": "stored_error", "status": 500}}
        rule = {"match": {"key": key}, "when": {"first": 1}, "fault": faults[status]}
        head = {"content-type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(SANDBOX + "/faults", json.dumps(rule).encode(), head)).close()
        return lambda: self.charge(key)

    def refund(self, charge, key, amount=500):
        return post(SANDBOX, "/v1/refunds", {"payment_intent": charge.id, "amount": amount}, key)

    def plain(self, key, text="of March"):
        body = {"amount": 5, "currency": "usd", "destination": "acct_1", "description": text}
        return post(SANDBOX, "/v1/transfers", body, key)

    def incomplete(self, key):
        return post(SANDBOX, "/v1/payment_intents", {"currency": "usd", "confirm": "true"}, key)

    def accounts(self):
        return ["acct_one", "acct_two"]


def both(sequence):
    """Runs a sequence of calls against each; both must say the same about the key at every step."""
    said = {}
    for peer in (Mock(), Sandbox()):
        answers = sequence(peer, uuid.uuid4().hex)
        # The first step at which an object was seen: equal numbers are equal objects.
        ids = [answer.id for answer in answers]
        bodies = [answer.body for answer in answers]
        said[type(peer).__name__] = [
            (*answer.about_the_key(), answer.id and ids.index(answer.id), bodies.index(answer.body))
            for answer in answers
        ]
    same("sandbox beside the mock", said["Sandbox"], said["Mock"])
    return [step[:3] for step in said["Mock"]]


def replay(peer, key):
    return [peer.charge(key), peer.charge(key), peer.charge(uuid.uuid4().hex), peer.charge(key)]


def mismatch(peer, key):
    return [peer.charge(key), peer.charge(key, amount=1), peer.charge(key)]


def declined(peer, key):
    return [peer.charge(key, outcome="declined"), peer.charge(key, outcome="declined"), peer.charge(key)]


def refunds(peer, key):
    charge = peer.charge(None)
    steps = [peer.refund(charge, key), peer.refund(charge, key), peer.refund(charge, key, amount=1)]
    return [*steps, peer.refund(charge, uuid.uuid4().hex, amount=10_000)]


def plain(peer, key):
    return [peer.plain(key), peer.plain(key), peer.plain(key, text="of April"), peer.plain(key), peer.plain(None)]


def credentials(peer, key):
    return [peer.charge(key, credential=None), peer.charge(key), peer.charge(key)]


def limited(peer, key):
    call = peer.failing(429, key)
    return [call(), call(), call()]


def failed(peer, key):
    call = peer.failing(500, key)
    return [call(), call(), call()]


def accounts(peer, key):
    one, two = peer.accounts()
    return [peer.charge(key, account=account) for account in (None, one, two, one)]


OK, REPLAYED = (200, None, None), (200, "true", None)
MISMATCH = (400, None, "idempotency_error")


def wanted(sequence, steps):
    return lambda: same("steps", both(sequence), steps)


def validation():
    """The mock stores a refusal of parameters; Stripe stores only what began to execute
    (https://docs.stripe.com/api/idempotent_requests), so the key is free for the corrected call."""
    said = {}
    for peer in (Mock(), Sandbox()):
        key = uuid.uuid4().hex
        said[type(peer).__name__] = [peer.incomplete(key).status, peer.charge(key).about_the_key()]
    same("mock", said["Mock"], [400, MISMATCH])
    same("sandbox", said["Sandbox"], [400, OK])


def other_path():
    """The mock keeps keys per path; Stripe refuses a key of another endpoint with its own error of this type."""
    said = {}
    for peer in (Mock(), Sandbox()):
        key = uuid.uuid4().hex
        said[type(peer).__name__] = [peer.charge(key).about_the_key(), peer.plain(key).about_the_key()]
    same("mock", said["Mock"], [OK, OK])
    same("sandbox", said["Sandbox"], [OK, MISMATCH])


def status(base):
    try:
        return post(base, "/v1/nothing", {}).status
    except urllib.error.URLError:
        return None


eventually("both to answer", lambda: status(MOCK) and status(SANDBOX))
DECLINED = (402, None, "card_error")
REFUSED = (400, None, "invalid_request_error")
UNAUTHORIZED = (401, None, "invalid_request_error")
FAILED, FAILED_AGAIN = (500, None, "api_error"), (500, "true", "api_error")
PLAIN = [OK, REPLAYED, MISMATCH, REPLAYED, OK]
case("charge: replay", wanted(replay, [OK, REPLAYED, OK, REPLAYED]))
case("charge: other parameters", wanted(mismatch, [OK, MISMATCH, REPLAYED]))
case("charge: a decline is stored", wanted(declined, [DECLINED, (402, "true", "card_error"), MISMATCH]))
case("refund: replay, other parameters, too much", wanted(refunds, [OK, REPLAYED, MISMATCH, REFUSED]))
case("customer beside transfer: replay, other parameters, no key", wanted(plain, PLAIN))
case("401 leaves the key unused", wanted(credentials, [UNAUTHORIZED, OK, REPLAYED]))
case("429 leaves the key unused", wanted(limited, [(429, None, LIMITED), OK, REPLAYED]))
case("500 is stored", wanted(failed, [FAILED, FAILED_AGAIN, FAILED_AGAIN]))
case("keys belong to an account", wanted(accounts, [OK, OK, OK, REPLAYED]))
case("known difference: refused parameters", validation)
case("known difference: one key, two paths", other_path)
finish()
