-- Invariant: a conversation is deleted at the provider only when its row is gone and its tombstone committed.
select t.sid, extract(epoch from clock_timestamp() - t.sid_at)::float8 from chat.conversation_tombstone t
 where t.conversation = $1 and not exists (select from chat.conversation c where c.id = $1)
