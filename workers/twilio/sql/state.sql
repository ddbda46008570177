-- Invariant: what is wanted of a conversation is its committed state; no row means deleted, whatever was asked for.
select state, sid, extract(epoch from clock_timestamp() - sid_at)::float8 from chat.conversation where id = $1
