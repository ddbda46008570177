"""Requests of the payments worker against Stripe's OpenAPI description. Arguments: description, record of the proxy."""

import json
import sys
import urllib.parse
import urllib.request

from cases import case, eventually, finish, same
from form_check import Description
from product import SANDBOX, authorize, emit, ledger, money, number, submissions, wait_ready, wait_settled

DESCRIPTION, RECORD = Description(sys.argv[1]), sys.argv[2]
ACCOUNT = "acct_peer"
#: Where effects are made, as the description names it, and the prefix that tells the sandbox which is meant.
CREATED = {
    "/v1/transfers": "/v1/transfers",
    "/v1/transfers/{id}/reversals": "/v1/transfers/",
    "/v1/payouts": "/v1/payouts",
    "/v1/payment_intents": "/v1/payment_intents",
    "/v1/refunds": "/v1/refunds",
}


def recorded():
    with open(RECORD, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def post(path, body, content_type):
    head = {"content-type": content_type, "authorization": "Bearer sk_test_peers"}
    urllib.request.urlopen(urllib.request.Request(SANDBOX + path, body.encode(), head), timeout=10).close()


def lie():
    """One effect of each kind is made and reported as a 500, which its key repeats for ever."""
    fault = {"kind": "stored_error", "status": 500, "applied": True}
    for path in CREATED.values():
        rule = {"match": {"method": "POST", "path": path}, "when": {"first": 1}, "fault": fault}
        post("/faults", json.dumps(rule), "application/json")


def force_lookups(count):
    """Once `count` kinds were told 500, their operations are wanted no more, which makes the worker look them up.

    They are found applied: the provider's result wins over the cancellation.
    """

    def told():
        lines = [line for line in recorded() if line["status"] == 500]
        return {urllib.parse.parse_qs(line["body"])["metadata[operation_id]"][0] for line in lines}

    eventually(f"{count} answers of 500", lambda: len(told()) == count)
    for operation in told():
        number(f"select backline.cancel_operation('{operation}', 'peers')")


def first_payments():
    """One of each kind, with each optional field present and absent."""
    transfer = {"type": "transfer", "amount": money(1250, "eur"), "destination": ACCOUNT}
    payout = {"type": "payout", "amount": money(700)}
    intent = {"type": "payment_intent", "amount": money(5000), "confirmation": "off_session"}
    intent["payment_method"] = "pm_card_visa"
    instructions = {
        "transfer": transfer,
        "transfer-told": {**transfer, "description": "rent & more = 100 % ü"},
        "payout": payout,
        "payout-connected": {**payout, "account": ACCOUNT, "destination": "ba_1", "method": "instant"},
        "payout-told": {**payout, "statement_descriptor": "RENT MARCH"},
        "intent": intent,
        "intent-told": {**intent, "customer": "cus_1", "description": "order 7"},
        "intent-connected": {**intent, "account": ACCOUNT},
    }
    for payment, instruction in instructions.items():
        authorize(payment, instruction)
    return len(instructions)


def reference(payment):
    """The provider's object of a submitted payment."""
    sql = f"""select output ->> 'id' from backline.operation_history h
               where h.kind <> 'stripe.settlement' and input ->> 'payment_id' = '{payment}'"""
    return number(sql)


def later_payments():
    """What refers to an earlier effect."""

    def refund(payment, refund_id, **instruction):
        instruction = {"amount": money(900), **instruction}
        payload = {"payment_id": payment, "refund_id": refund_id, "authorization": "peers", "instruction": instruction}
        emit("RefundAuthorized", payment, payload)

    intent, told, connected = reference("intent"), reference("intent-told"), reference("intent-connected")
    refund("intent", "r1", source={"payment_intent": intent})
    refund("intent", "r2", source={"charge": intent.replace("pi_", "ch_")}, reason="duplicate")
    both = {"reverse_transfer": True, "refund_application_fee": True}
    refund("intent-told", "r3", source={"payment_intent": told}, reason="requested_by_customer", **both)
    refund("intent-connected", "r4", source={"payment_intent": connected}, account=ACCOUNT, reason="fraudulent")
    instruction = {"transfer": reference("transfer"), "amount": money(250, "eur")}
    payload = {"payment_id": "transfer", "reversal_id": "v1", "authorization": "peers", "instruction": instruction}
    emit("ReversalAuthorized", "transfer", payload)
    return 5


def attended():
    """An intent that the application confirms with the customer present."""
    authorize("intent-attended", {"type": "payment_intent", "amount": money(30), "confirmation": "later"})
    made = eventually("the intent", lambda: reference("intent-attended"))
    form = urllib.parse.urlencode({"payment_method": "pm_card_visa"})
    post(f"/v1/payment_intents/{made}/confirm", form, "application/x-www-form-urlencoded")
    return 1


def run():
    wait_ready()
    lie()
    count = first_payments()
    force_lookups(3)
    wait_settled(count)
    count += later_payments()
    force_lookups(5)
    wait_settled(count)
    count += attended()
    wait_settled(count)
    kinds = {kind for kind, outcome in submissions().values() if outcome == "succeeded"}
    wanted = {f"stripe.{kind}" for kind in ("transfer", "payout", "payment_intent", "refund", "reversal")}
    same("kinds", kinds, wanted)
    operations, report = ledger()
    same("applied once each", [entry["applied"] for entry in operations.values()], [1] * count)
    same("operations", set(operations), set(submissions()))
    told_500 = {DESCRIPTION.template("post", line["path"]) for line in recorded() if line["status"] == 500}
    same("told 500", told_500, set(CREATED))


def checked(method):
    """Endpoints asked by `method`, each with all that is wrong with its requests."""
    found = {}
    for line in recorded():
        if line["method"] == method:
            endpoint = DESCRIPTION.template(method, line["path"])
            text = line["query"] if method == "get" else line["body"]
            found.setdefault(endpoint, []).extend(DESCRIPTION.problems(method, line["path"], text))
    return found


def bodies():
    same("problems", checked("post"), {path: [] for path in CREATED})


def queries():
    found = checked("get")
    same("problems", {path: problems for path, problems in found.items() if problems}, {})
    same("lookups", {path for path in found if not path.endswith("}")}, set(CREATED))


def answers():
    """The other direction: what the sandbox says, whether it is an object, a page or an error."""
    wrong = {}
    for line in recorded():
        told = DESCRIPTION.answer_problems(line["method"], line["path"], line["status"], line["reply"])
        if told:
            wrong.setdefault(f"{line['method']} {line['path']} {line['status']}", []).extend(told)
    same("problems", wrong, {})


def envelopes():
    for line in recorded():
        wanted = line["method"] == "post"
        same("key", bool(line["key"]), wanted)
        same("content type", line["content_type"], "application/x-www-form-urlencoded" if wanted else None)
        assert line["version"], "no Stripe-Version"
    posts = [line for line in recorded() if line["method"] == "post"]
    by_key = {line["key"]: (line["path"], line["body"]) for line in posts}
    for line in posts:
        same("bytes under one key", (line["path"], line["body"]), by_key[line["key"]])
    connected = [line for line in posts if "stripe-account" in line["headers"]]
    assert len(connected) >= 3, "payout, intent and refund of a connected account"


def wrong():
    """The checker itself: a body of ours, spoiled in each way that Stripe refuses."""
    whole = next(line["body"] for line in recorded() if line["path"] == "/v1/transfers" and line["method"] == "post")
    same("whole", DESCRIPTION.problems("post", "/v1/transfers", whole), [])
    refund = "payment_intent=pi_1&amount=5"
    without = "&".join(part for part in whole.split("&") if not part.startswith("destination="))
    fraction = f"{without}&destination=acct_1&amount=12.50"
    spoiled = {
        "unknown parameter": ("/v1/transfers", f"{whole}&surprise=1", "'surprise' was unexpected"),
        "missing parameter": ("/v1/transfers", without, "'destination' is a required property"),
        "type": ("/v1/transfers", fraction, "amount: '12.50' is not of type 'integer'"),
        "enum": ("/v1/refunds", f"{refund}&reason=regret", "reason: 'regret' is not one of"),
        "nested": ("/v1/payment_intents", "amount=5&currency=usd&transfer_data[to]=acct_1", "transfer_data: "),
        "list for a value": ("/v1/refunds", f"{refund}&charge[0]=ch_1", "charge: "),
    }
    for name, (path, body, problem) in spoiled.items():
        found = DESCRIPTION.problems("post", path, body)
        assert any(problem in one for one in found), f"{name}: not refused for {problem!r}, but {found}"
    line = next(one for one in recorded() if one["path"] == "/v1/payouts" and one["status"] == 200)
    for spoil in ({"amount": "7"}, {"metadata": None, "id": None}, {"destination": 7}):
        found = DESCRIPTION.answer_problems("post", "/v1/payouts", 200, {**line["reply"], **spoil})
        assert found, f"an answer with {spoil} passes"


case("payments of each kind settle, each applied once, lookups forced", run)
case("bodies are what Stripe describes", bodies)
case("queries are what Stripe describes", queries)
case("keys, versions and content types", envelopes)
case("the sandbox's answers are what Stripe describes", answers)
case("the checker refuses spoiled bodies and answers", wrong)
finish()
