-- Invariant: whoever wrote participants says when, with the outcome: lists are believed only a lag later.
update chat.conversation set touched_at = case when $2 then clock_timestamp() else touched_at end, attention = null
 where id = $1 and ($2 or attention is not null)
