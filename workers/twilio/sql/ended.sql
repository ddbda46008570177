-- Invariant: a conversation counts as ended when the provider was found closed, not when that was asked for.
update chat.conversation set ended_at = coalesce(ended_at, clock_timestamp()), attention = null where id = $1
