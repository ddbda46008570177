-- Invariant: reads only; one row per conversation that was opened, the deleted ones with the mark of their tombstone.
select asked.id, c.state,
    array(select m.who #>> '{chat,identity}' from chat.conversation_member m where m.conversation = asked.id) as people,
    coalesce(c.ended_at, t.gone_at) is not null as ended, c.sid is not null as created
  from unnest($1::uuid[]) asked(id)
  left join chat.conversation c on c.id = asked.id
  left join chat.conversation_tombstone t on t.conversation = asked.id
