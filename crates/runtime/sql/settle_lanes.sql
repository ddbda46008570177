-- Invariant: after a claim a lane's mark and next_due stand at its first row that is still ready, whoever has it locked; empty = infinity.
update backline.ready_lane l
   set last_claimed = clock_timestamp(), in_flight = l.in_flight + case when l.cap is null then 0 else q.claimed end,
       next_due = coalesce(n.due_at, 'infinity'), mark_due = coalesce(n.due_at, statement_timestamp()),
       mark_id = coalesce(n.id, '00000000-0000-0000-0000-000000000000')
  from unnest($1::text[], $2::uuid[], $3::smallint[], $4::timestamptz[], $5::uuid[], $6::int[])
        as q(kind, organization, priority, mark_due, mark_id, claimed)
  left join lateral (
        select o.due_at, o.id from backline.operation o
         where o.kind = q.kind and o.organization = q.organization and o.priority = q.priority and o.state = 'ready'
           and (o.due_at, o.id) >= (q.mark_due, q.mark_id) order by o.due_at, o.id limit 1) n on true
 where l.kind = q.kind and l.organization = q.organization and l.priority = q.priority
