-- Invariant: members and removals are of one snapshot; whoever is a member again is not to be removed.
select c.state, c.sid, extract(epoch from clock_timestamp() - c.sid_at)::float8,
    coalesce((select jsonb_agg(m.who) from chat.conversation_member m where m.conversation = c.id), '[]'),
    coalesce((select jsonb_agg(r.who) from chat.removal r where r.conversation = c.id
        and not exists (select from chat.conversation_member m where m.conversation = c.id and m.who = r.who)), '[]')
  from chat.conversation c where c.id = $1
