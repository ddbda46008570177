"""Stripe's Python library against the sandbox. Argument: base URL of the sandbox.

The sandbox runs with a search lag of zero and one day of key memory.
"""

import json
import sys
import threading
import urllib.request
import uuid

import stripe

from cases import case, eventually, finish, raises, same

BASE = sys.argv[1]
KEY = "sk_test_peers"


def client(key=KEY, retries=0):
    return stripe.StripeClient(key, base_addresses={"api": BASE}, max_network_retries=retries)


api = client().v1
ACCOUNT = "acct_peer"


def unique():
    return uuid.uuid4().hex


def keyed(key=None, account=None):
    options = {"idempotency_key": key or unique()}
    return {**options, "stripe_account": account} if account else options


def page(path, body=None, method="POST"):
    """One of the sandbox's own pages."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(BASE + path, data=data, method=method)
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def faulty(fault, operation, **when):
    """A rule for the POSTs of one operation."""
    rule = {"match": {"method": "POST", "operation_id": operation}, "when": when or {"first": 1}, "fault": fault}
    page("/faults", rule)


def ledger(operation):
    """What the sandbox knows of one operation; nothing before the first call that names it."""
    operations = json.loads(page(f"/ledger?operation_id={operation}", method="GET"))["operations"]
    return operations.get(operation, {"applied": 0, "calls": 0, "keys": []})


def headers(answer):
    return {name.lower(): value for name, value in answer.last_response.headers.items()}


def transfer(operation=None, amount=1250, key=None, api=api, **more):
    body = {"amount": amount, "currency": "eur", "destination": ACCOUNT, **more}
    if operation:
        body["metadata"] = {"operation_id": operation}
    return api.transfers.create(body, keyed(key))


def intent(**more):
    body = {"amount": 2000, "currency": "usd", "confirm": True, "payment_method": "pm_card_visa", **more}
    return api.payment_intents.create(body, keyed())


def transfers():
    group = unique()
    made = transfer(unique(), transfer_group=group, description="of March")
    assert isinstance(made, stripe.Transfer), type(made)
    same("shown", (made.amount, made.currency, made.destination, made.reversed), (1250, "eur", ACCOUNT, False))
    same("description", made.description, "of March")
    same("retrieved", api.transfers.retrieve(made.id).to_dict(), made.to_dict())
    listed = api.transfers.list({"transfer_group": group})
    same("listed", [one.id for one in listed.data], [made.id])
    expanded = api.transfers.retrieve(made.id, {"expand": ["balance_transaction", "destination"]})
    same("source", expanded.balance_transaction.source, made.id)
    same("net", expanded.balance_transaction.net, -1250)
    assert isinstance(expanded.destination, stripe.Account), type(expanded.destination)


def reversals():
    made = transfer(unique())
    back = api.transfers.reversals.create(made.id, {"amount": 250, "metadata": {"a": "b"}}, keyed())
    assert isinstance(back, stripe.TransferReversal), type(back)
    same("shown", (back.amount, back.transfer, back.metadata["a"]), (250, made.id, "b"))
    same("retrieved", api.transfers.reversals.retrieve(made.id, back.id).id, back.id)
    same("listed", [one.id for one in api.transfers.reversals.list(made.id).data], [back.id])
    after = api.transfers.retrieve(made.id)
    same("transfer", (after.amount_reversed, after.reversed, after.reversals.data[0].id), (250, False, back.id))
    too_much = lambda: api.transfers.reversals.create(made.id, {"amount": 1001}, keyed())  # noqa: E731
    same("param", raises(stripe.InvalidRequestError, too_much).param, "amount")


def payouts():
    body = {"amount": 700, "currency": "usd", "method": "instant", "statement_descriptor": "RENT"}
    made = api.payouts.create(body, keyed(account=ACCOUNT))
    assert isinstance(made, stripe.Payout), type(made)
    same("shown", (made.amount, made.method, made.statement_descriptor), (700, "instant", "RENT"))
    same("status", made.status, "pending")
    on_behalf = {"stripe_account": ACCOUNT}
    eventually("paid", lambda: api.payouts.retrieve(made.id, None, on_behalf).status == "paid", limit=10)
    assert made.id in [one.id for one in api.payouts.list(None, on_behalf).data], "not listed"
    missing = raises(stripe.InvalidRequestError, lambda: api.payouts.retrieve(made.id))
    same("on the platform", (missing.http_status, missing.code), (404, "resource_missing"))


def intents():
    made = api.payment_intents.create({"amount": 2000, "currency": "usd", "customer": "cus_1"}, keyed())
    assert isinstance(made, stripe.PaymentIntent), type(made)
    same("new", (made.status, made.amount_received), ("requires_payment_method", 0))
    done = api.payment_intents.confirm(made.id, {"payment_method": "pm_card_visa"}, keyed())
    same("confirmed", (done.status, done.amount_received), ("succeeded", 2000))
    held = intent(capture_method="manual")
    same("held", (held.status, held.amount_capturable), ("requires_capture", 2000))
    captured = api.payment_intents.capture(held.id, {"amount_to_capture": 1500}, keyed())
    same("captured", (captured.status, captured.amount_received), ("succeeded", 1500))
    given_up = api.payment_intents.create({"amount": 5, "currency": "usd"}, keyed())
    canceled = api.payment_intents.cancel(given_up.id, {"cancellation_reason": "abandoned"}, keyed())
    same("canceled", canceled.status, "canceled")
    state = raises(stripe.InvalidRequestError, lambda: api.payment_intents.capture(done.id, None, keyed()))
    same("code", (state.code, state.error.payment_intent.id), ("payment_intent_unexpected_state", done.id))
    assert made.id in [one.id for one in api.payment_intents.list({"customer": "cus_1"}).data], "not listed"


def search():
    mark = unique()
    made = intent(metadata={"mark": mark})
    found = api.payment_intents.search({"query": f"metadata['mark']:'{mark}' AND status:'succeeded'"})
    same("found", [one.id for one in found.auto_paging_iter()], [made.id])


def refunds():
    paid = intent()
    made = api.refunds.create({"payment_intent": paid.id, "amount": 500, "reason": "duplicate"}, keyed())
    assert isinstance(made, stripe.Refund), type(made)
    same("shown", (made.amount, made.status, made.reason), (500, "succeeded", "duplicate"))
    same("charge", made.charge, paid.latest_charge)
    by_charge = api.refunds.create({"charge": paid.latest_charge}, keyed())
    same("rest", by_charge.amount, 1500)
    listed = api.refunds.list({"payment_intent": paid.id}).data
    same("listed, newest first", [one.id for one in listed], [by_charge.id, made.id])
    same("retrieved", api.refunds.retrieve(made.id).to_dict(), made.to_dict())
    again = raises(stripe.InvalidRequestError, lambda: api.refunds.create({"charge": paid.latest_charge}, keyed()))
    same("code", again.code, "charge_already_refunded")


def money():
    made = transfer(unique())
    at = lambda: api.balance_transactions.retrieve(made.balance_transaction)  # noqa: E731
    same("amount", (at().amount, at().type, at().source), (-1250, "transfer", made.id))
    eventually("available", lambda: at().status == "available", limit=10)
    balance = api.balance.retrieve()
    assert isinstance(balance, stripe.Balance) and balance.available, balance
    account = api.accounts.retrieve(ACCOUNT)
    same("account", (account.id, account.capabilities["transfers"]), (ACCOUNT, "active"))
    assert api.accounts.retrieve_current().id.startswith("acct_")


def invalid():
    def refused(run, status, code, param):
        error = raises(stripe.InvalidRequestError, run)
        same("refusal", (error.http_status, error.code, error.param), (status, code, param))
        assert error.request_id, "no request id"

    no_destination = {"amount": 1, "currency": "eur"}
    whole = {"amount": 1, "currency": "eur", "destination": ACCOUNT}
    create = api.transfers.create
    refused(lambda: create(no_destination, keyed()), 400, "parameter_missing", "destination")
    refused(lambda: create({**whole, "surprise": "x"}, keyed()), 400, "parameter_unknown", "surprise")
    refused(lambda: create({**whole, "amount": "ten"}, keyed()), 400, "parameter_invalid_integer", "amount")
    refused(lambda: create({**whole, "amount": 0}, keyed()), 400, "parameter_invalid_integer", "amount")
    refused(lambda: create({**whole, "destination": "nobody"}, keyed()), 400, "resource_missing", "destination")
    refused(lambda: api.transfers.retrieve("tr_none"), 404, "resource_missing", "id")
    refused(lambda: api.payment_intents.retrieve("pi_none"), 404, "resource_missing", "intent")


def declined():
    error = raises(stripe.CardError, lambda: intent(payment_method="pm_card_chargeDeclinedInsufficientFunds"))
    same("decline", (error.http_status, error.code), (402, "card_declined"))
    same("reason", error.error.decline_code, "insufficient_funds")
    same("left behind", error.error.payment_intent.status, "requires_payment_method")
    off = lambda: intent(payment_method="pm_card_authenticationRequired", off_session=True)  # noqa: E731
    same("code", raises(stripe.CardError, off).code, "authentication_required")
    action = intent(payment_method="pm_card_authenticationRequired", return_url="https://example.org/back")
    same("with a person", action.status, "requires_action")


def credentials():
    error = raises(stripe.AuthenticationError, lambda: client("pk_wrong").v1.balance.retrieve())
    same("status", error.http_status, 401)
    page("/control", {"action": "account", "id": "acct_gone", "state": "missing"})
    gone = lambda: api.balance.retrieve(None, {"stripe_account": "acct_gone"})  # noqa: E731
    error = raises(stripe.PermissionError, gone)
    same("error", (error.http_status, error.error.code), (403, "account_invalid"))


def insufficient():
    page("/control", {"action": "account", "id": "acct_blocked", "state": "blocked"})
    blocked = lambda: transfer(unique(), destination="acct_blocked")  # noqa: E731
    error = raises(stripe.InvalidRequestError, blocked)
    same("code", error.code, "insufficient_capabilities_for_transfer")


def replay():
    operation, key = unique(), unique()
    first = transfer(operation, key=key)
    second = transfer(operation, key=key)
    same("body", second.last_response.body, first.last_response.body)
    same("first", headers(first).get("idempotent-replayed"), None)
    same("second", headers(second).get("idempotent-replayed"), "true")
    same("key", headers(second).get("idempotency-key"), key)
    assert first.last_response.request_id != second.last_response.request_id, "one request id for two requests"
    same("applied", ledger(operation)["applied"], 1)


def replayed_refusal():
    key = unique()
    run = lambda: api.transfers.create({"amount": 1, "currency": "eur", "destination": "none"}, keyed(key))  # noqa: E731
    first, second = raises(stripe.InvalidRequestError, run), raises(stripe.InvalidRequestError, run)
    same("body", second.http_body, first.http_body)
    same("first", first.headers.get("idempotent-replayed"), None)
    same("second", second.headers.get("idempotent-replayed"), "true")


def mismatch():
    operation, key = unique(), unique()
    transfer(operation, key=key)
    error = raises(stripe.IdempotencyError, lambda: transfer(operation, amount=9, key=key))
    same("error", (error.http_status, error.error.type), (400, "idempotency_error"))
    same("replayed", error.headers.get("idempotent-replayed"), None)
    same("applied", ledger(operation)["applied"], 1)
    other_path = lambda: api.payouts.create({"amount": 1250, "currency": "eur"}, keyed(key))  # noqa: E731
    raises(stripe.IdempotencyError, other_path)


def key_per_account():
    key = unique()
    body = {"amount": 3, "currency": "usd"}
    one = api.payouts.create(body, keyed(key, "acct_one"))
    two = api.payouts.create(body, keyed(key, "acct_two"))
    assert one.id != two.id, "accounts share keys"


def lost_reply():
    """The library repeats by itself, with its key: one effect, and the answer of the first."""
    operation = unique()
    faulty({"kind": "drop_reply"}, operation)
    made = transfer(operation, api=client(retries=2).v1)
    same("replayed", headers(made).get("idempotent-replayed"), "true")
    found = ledger(operation)
    same("ledger", (found["applied"], found["calls"], len(found["keys"])), (1, 2, 1))


def connection_lost():
    operation = unique()
    faulty({"kind": "drop_before"}, operation)
    raises(stripe.APIConnectionError, lambda: transfer(operation))
    same("applied", ledger(operation)["applied"], 0)


def limited():
    operation, key = unique(), unique()
    faulty({"kind": "rate_limited", "reason": "global-rate", "retry_after": {"seconds": 1}}, operation)
    error = raises(stripe.RateLimitError, lambda: transfer(operation, key=key))
    same("headers", (error.headers["stripe-rate-limited-reason"], error.headers["retry-after"]), ("global-rate", "1"))
    made = transfer(operation, key=key)
    same("the key is unused", headers(made).get("idempotent-replayed"), None)


def in_use():
    operation, key = unique(), unique()
    faulty({"kind": "slow", "delay": "500ms"}, operation)
    results = []
    thread = threading.Thread(target=lambda: results.append(transfer(operation, key=key)))
    thread.start()
    eventually("the first call", lambda: ledger(operation)["calls"])
    error = raises(stripe.StripeError, lambda: transfer(operation, key=key))
    same("error", (error.http_status, error.error.code), (409, "idempotency_key_in_use"))
    thread.join(10)
    same("result", headers(results[0]).get("idempotent-replayed"), None)


def stored_500():
    operation, key = unique(), unique()
    faulty({"kind": "stored_error", "status": 500, "applied": True}, operation)
    for replayed in (None, "true"):
        error = raises(stripe.APIError, lambda: transfer(operation, key=key))
        told = (error.http_status, error.headers.get("idempotent-replayed"), error.headers.get("stripe-should-retry"))
        same("answer", told, (500, replayed, "false"))
    same("applied", ledger(operation)["applied"], 1)


def garbage():
    operation = unique()
    faulty({"kind": "html", "status": 502}, operation)
    same("status", raises(stripe.APIError, lambda: transfer(operation)).http_status, 502)


def paging():
    group = unique()
    made = [transfer(unique(), amount=n + 1, transfer_group=group).id for n in range(25)]
    first = api.transfers.list({"transfer_group": group, "limit": 10})
    same("page", (len(first.data), first.has_more, first.url), (10, True, "/v1/transfers"))
    forward = [one.id for one in first.auto_paging_iter()]
    same("newest first", forward, made[::-1])
    last = api.transfers.list({"transfer_group": group, "limit": 10, "ending_before": made[0]})
    same("before the oldest", [one.id for one in last.data], made[1:11][::-1])
    same("more before", last.has_more, True)
    same("backward", [one.id for one in last.auto_paging_iter()], made[1:])
    since = api.transfers.retrieve(made[0]).created
    window = {"transfer_group": group, "created": {"gte": since, "lte": since + 60}, "limit": 100}
    same("window", len(api.transfers.list(window).data), 25)
    earlier = {"transfer_group": group, "created": {"lt": since}}
    same("earlier", api.transfers.list(earlier).data, [])
    unknown = lambda: api.transfers.list({"starting_after": "tr_none"})  # noqa: E731
    same("cursor", raises(stripe.InvalidRequestError, unknown).param, "starting_after")


case("transfers: create, retrieve, list, expand", transfers)
case("reversals: create, retrieve, list, too much", reversals)
case("payouts of a connected account become paid", payouts)
case("payment intents: confirm, capture, cancel", intents)
case("search", search)
case("refunds: by intent, by charge, already refunded", refunds)
case("balance transactions, balance, accounts", money)
case("errors: parameters and missing objects", invalid)
case("errors: declines leave an intent", declined)
case("errors: credentials and accounts", credentials)
case("errors: a destination that cannot receive", insufficient)
case("key: replay is the same bytes", replay)
case("key: a stored refusal is replayed", replayed_refusal)
case("key: other parameters or path are refused", mismatch)
case("key: keys belong to an account", key_per_account)
case("key: in use", in_use)
case("key: a stored 500 is replayed", stored_500)
case("key: 429 leaves it unused", limited)
case("lost reply: the library's own repeat has one effect", lost_reply)
case("lost request: nothing applied", connection_lost)
case("a page that is not JSON", garbage)
case("paging forward, backward and by window", paging)
finish()
