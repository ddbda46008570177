"""microburst between the payments worker and the sandbox. Argument: base URL of its control pages."""

import json
import sys
from collections import Counter

from cases import case, finish, same
from product import authorize, get, ledger, money, settled, submissions, wait_ready, wait_settled

CONTROL = sys.argv[1]
PAYMENTS = 30


def payments():
    wait_ready()
    # The first request through the proxy makes it read the models of every AWS service for seconds; callers would time
    # out, and the faults would hit requests that nobody waits for any more. This one goes through to the sandbox.
    get(f"{CONTROL}/healthz", limit=60)
    for n in range(PAYMENTS):
        kinds = [
            {"type": "transfer", "destination": "acct_peer"},
            {"type": "payout"},
            {"type": "payment_intent", "confirmation": "off_session", "payment_method": "pm_card_visa"},
        ]
        authorize(f"p{n}", {**kinds[n % 3], "amount": money(1000 + n)})
    wait_settled(PAYMENTS, limit=120)
    same("settled", settled(), PAYMENTS)


def applied_once():
    operations, report = ledger()
    same("operations", set(operations), set(submissions()))
    same("outcomes", {outcome for _, outcome in submissions().values()}, {"succeeded"})
    wrong = {id: entry for id, entry in operations.items() if entry["applied"] != 1}
    same("not applied once", wrong, {})
    same("without an operation", report["applied_without_operation"], 0)
    for entry in operations.values():
        same("keys and bodies of one submission", (len(entry["keys"]), len(entry["params_hashes"])), (1, 1))
    total = sum(entry["amount"] for entry in operations.values())
    same("money", total, sum(1000 + n for n in range(PAYMENTS)))


def fired():
    """The audit log of the fault proxy; without it, a quiet run would prove nothing."""
    events = json.loads(get(f"{CONTROL}/_microburst/fired?limit=1000"))
    actions = Counter((event["rule_id"], event["action"]) for event in events)
    print(dict(actions), file=sys.stderr)
    same("times", sorted(actions.values()), [3] * 5)


def replayed():
    """What was cut after its effect was asked again under its key, and answered from the key's memory."""
    operations, _ = ledger()
    repeated = sum(entry["replayed"] for entry in operations.values())
    assert repeated >= 6, f"{repeated} replays for six lost replies"


case("payments of three kinds settle", payments)
case("each payment applied once, with one key and one body", applied_once)
case("the faults fired: reset, reply cut, reply lost, 429, 503", fired)
case("lost replies were replayed", replayed)
finish()
