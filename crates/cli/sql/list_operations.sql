-- Invariant: reads only. Unfinished operations, those that need a person first, then the oldest.
select o.id, o.kind, o.organization, o.state::text as "state!", o.waiting_for, o.failure_class, o.failure_code, o.attempt, o.submission,
    extract(epoch from clock_timestamp() - o.accepted_at)::double precision as "age_seconds!",
    extract(epoch from o.due_at - clock_timestamp())::double precision as "due_in_seconds!", o.operation_key
  from backline.operation o
 where ($1::text is null or o.state::text = $1) and ($2::text is null or o.kind = $2) and ($3::uuid is null or o.organization = $3)
   and ($4::text is null or o.failure_class = $4)
 order by case o.state when 'manual' then 0 when 'dead' then 1 when 'unknown' then 2 else 3 end, o.accepted_at, o.id limit $5
