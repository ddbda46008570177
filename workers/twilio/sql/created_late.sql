-- Invariant: a SID outlives its row; if the row went while the creation was under way, the tombstone keeps it.
update chat.conversation_tombstone set sid = $2, sid_at = clock_timestamp() where conversation = $1 and (sid is null or sid = $2)
