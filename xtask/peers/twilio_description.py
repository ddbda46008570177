"""What Prism is given: Twilio's description of the calls in question, with every object refusing what it does not name.

Arguments: Twilio's description of Conversations, file to write. The whole description takes Prism long to read.
"""

import json
import sys

from form_check import closed

PATHS = (
    "/v1/Conversations",
    "/v1/Conversations/{Sid}",
    "/v1/Conversations/{ConversationSid}/Participants",
    "/v1/Conversations/{ConversationSid}/Participants/{Sid}",
    # Not called by us: of the calls beside ours it alone has a field that must be there.
    "/v1/Conversations/{ConversationSid}/Webhooks",
)


def judged(value):
    """Without what would not judge: examples are objects too, and a `nullable` beside no type, which allows everything
    anyway, makes Prism drop the whole schema without a word."""
    if isinstance(value, list):
        return [judged(one) for one in value]
    if not isinstance(value, dict):
        return value
    left_out = {"examples"} if "type" in value else {"examples", "nullable"}
    return {name: judged(one) for name, one in value.items() if name not in left_out}


with open(sys.argv[1], encoding="utf-8") as text:
    whole = json.load(text)
whole["paths"] = {path: whole["paths"][path] for path in PATHS}
with open(sys.argv[2], "w", encoding="utf-8") as text:
    json.dump(closed(judged(whole)), text)
