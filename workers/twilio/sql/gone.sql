-- Invariant: a tombstone keeps what was deleted and says when it was seen absent.
update chat.conversation_tombstone set sid = coalesce(sid, $2), gone_at = clock_timestamp() where conversation = $1 and gone_at is null
