"""Requests of the payments worker against Stripe's OpenAPI description. Arguments: description, record of the proxy."""

import json
import sys
import urllib.parse
import urllib.request

from cases import case, eventually, finish, same
from form_check import Description
from product import SANDBOX, authorize, emit, get, ledger, money, number, submissions, wait_ready, wait_settled

DESCRIPTION, RECORD = Description(sys.argv[1]), sys.argv[2]
ACCOUNT = "acct_peer"
#: Stripe creates these; the sandbox loses one reply of each, so that the lookups are seen, too.
CREATED = ["/v1/transfers", "/v1/payouts", "/v1/payment_intents", "/v1/refunds"]


def recorded():
    with open(RECORD, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def post(path, body, content_type):
    head = {"content-type": content_type, "authorization": "Bearer sk_test_peers"}
    urllib.request.urlopen(urllib.request.Request(SANDBOX + path, body.encode(), head), timeout=10).close()


def lose_replies():
    for path in CREATED:
        rule = {"match": {"method": "POST", "path": path}, "when": {"first": 1}, "fault": {"kind": "drop_reply"}}
        post("/faults", json.dumps(rule), "application/json")


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
    lose_replies()
    count = first_payments()
    wait_settled(count)
    count += later_payments()
    wait_settled(count)
    count += attended()
    wait_settled(count)
    kinds = {kind for kind, outcome in submissions().values() if outcome == "succeeded"}
    wanted = {f"stripe.{kind}" for kind in ("transfer", "payout", "payment_intent", "refund", "reversal")}
    same("kinds", kinds, wanted)
    operations, report = ledger()
    same("applied once each", [entry["applied"] for entry in operations.values()], [1] * count)
    same("operations", set(operations), set(submissions()))
    lost = [line["path"] for line in recorded() if line["status"] is None]
    same("replies lost", sorted(lost), sorted(CREATED))


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
    reversal = "/v1/transfers/{id}/reversals"
    same("problems", checked("post"), {path: [] for path in [*CREATED, reversal]})


def queries():
    found = checked("get")
    same("problems", {path: problems for path, problems in found.items() if problems}, {})
    lists = {path for path in found if not path.endswith("}")}
    assert lists, "no lookup was seen"


def envelopes():
    for line in recorded():
        wanted = line["method"] == "post"
        same("key", bool(line["key"]), wanted)
        same("content type", line["content_type"], "application/x-www-form-urlencoded" if wanted else None)
        assert line["version"], "no Stripe-Version"
    posts = [line for line in recorded() if line["method"] == "post"]
    by_key = {line["key"]: line for line in posts}
    for line in posts:
        same("bytes under one key", (line["path"], line["body"]), (by_key[line["key"]]["path"], by_key[line["key"]]["body"]))
    connected = [line for line in posts if "stripe-account" in line["headers"]]
    assert len(connected) >= 3, "payout, intent and refund of a connected account"


def wrong():
    """The checker itself: a body of ours, spoiled in each way that Stripe refuses."""
    whole = next(line["body"] for line in recorded() if line["path"] == "/v1/transfers" and line["method"] == "post")
    same("whole", DESCRIPTION.problems("post", "/v1/transfers", whole), [])
    refund = "payment_intent=pi_1&amount=5"
    without = "&".join(part for part in whole.split("&") if not part.startswith("destination="))
    spoiled = {
        "unknown parameter": ("/v1/transfers", f"{whole}&surprise=1", "'surprise' was unexpected"),
        "missing parameter": ("/v1/transfers", without, "'destination' is a required property"),
        "type": ("/v1/transfers", f"{without}&destination=acct_1&amount=12.50", "amount: '12.50' is not of type 'integer'"),
        "enum": ("/v1/refunds", f"{refund}&reason=regret", "reason: 'regret' is not one of"),
        "nested": ("/v1/payment_intents", "amount=5&currency=usd&transfer_data[to]=acct_1", "transfer_data: "),
        "list for a value": ("/v1/refunds", f"{refund}&charge[0]=ch_1", "charge: "),
    }
    for name, (path, body, problem) in spoiled.items():
        found = DESCRIPTION.problems("post", path, body)
        assert any(problem in one for one in found), f"{name}: not refused for {problem!r}, but {found}"


case("payments of each kind settle, each applied once, four replies lost", run)
case("bodies are what Stripe describes", bodies)
case("queries are what Stripe describes", queries)
case("keys, versions and content types", envelopes)
case("the checker refuses spoiled bodies", wrong)
finish()
