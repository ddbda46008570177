-- Invariant: a removal is wanted unless they are a member again; that a row is missing proves nothing about the provider.
select c.state, c.sid, extract(epoch from clock_timestamp() - c.sid_at)::float8, extract(epoch from clock_timestamp() - c.touched_at)::float8,
    exists (select from chat.conversation_member m where m.conversation = c.id and m.who = $2),
    exists (select from chat.removal r where r.conversation = c.id and r.who = $2 and r.confirmed_at is not null)
  from chat.conversation c where c.id = $1
