-- Invariant: an operation is accepted once: a repeated command changes nothing, a repeated reconcile request raises its generation and is due
-- when it says, however long the older one waits; what was to be looked at later (a delay, an abandoned attempt) is looked at later as well.
with r as materialized (
    select q.*, k.mode, k.serial, k.max_input_version >= q.input_version as capable,
        clock_timestamp() + q.ord * interval '1 microsecond' as at, case when k.mode = 'reconcile' then q.soon_ms else coalesce(q.delay_ms, 0) end as wait_ms
      from unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::int[], $8::bigint[], $9::bigint[],
        $10::timestamptz[], $11::text[], $12::smallint[], $13::uuid[], $14::uuid[], $15::text[], $16::text[],
        $17::bigint[], $18::bigint[]) with ordinality
        as q(id, kind, organization, project, operation_key, input, input_version, requests, delay_ms, expires_at, serial_key, priority,
            correlation_id, causation_id, traceparent, newest, soon_ms, late_ms, ord)
      left join backline.kind k on k.kind = q.kind),
c as (insert into backline.operation_identity (id, kind, input_hash)
    select id, kind, md5(input)::uuid from r where mode is distinct from 'reconcile' order by id
    on conflict (id) do nothing returning id, 1::bigint as generation),
g as (insert into backline.operation_identity as d (id, kind, last_generation) select id, kind, requests from r where mode = 'reconcile' order by id
    on conflict (id) do update set last_generation = d.last_generation + excluded.last_generation returning d.id, d.last_generation as generation)
insert into backline.operation as o (id, kind, organization, project, operation_key, mode, state, waiting_for, priority, due_at, serial_key,
    serial, input, input_version, desired_generation, absent_after, expires_at, correlation_id, causation_id, traceparent, accepted_at)
select r.id, r.kind, r.organization, r.project, r.operation_key, coalesce(r.mode, 'command'),
    case when r.capable then 'ready' else 'waiting' end::backline.operation_state, case when r.capable then null else 'capability' end, r.priority, r.at + r.wait_ms * interval '1 millisecond', r.serial_key, coalesce(r.serial, 'exclusive'), case when r.mode = 'reconcile' then r.newest else r.input end::jsonb, r.input_version, i.generation,
    case when r.mode = 'reconcile' and r.late_ms > r.soon_ms then r.at + r.late_ms * interval '1 millisecond' end, r.expires_at, r.correlation_id, r.causation_id, r.traceparent, r.at
  from r join (select * from c union all select * from g) i on i.id = r.id order by r.id
on conflict (id) do update set desired_generation = greatest(o.desired_generation, excluded.desired_generation), input = excluded.input,
    input_version = excluded.input_version, attempt = case when o.state in ('running', 'unknown') then o.attempt else 0 end,
    state = case when o.state = 'dead' or (o.state = 'manual' and o.mode = 'reconcile') then 'ready' else o.state end,
    due_at = case o.state when 'running' then o.due_at when 'unknown' then o.due_at when 'ready' then least(o.due_at, excluded.due_at) when 'waiting' then least(o.due_at, excluded.due_at) else excluded.due_at end,
    absent_after = greatest(o.absent_after, case when o.state in ('ready', 'waiting') and o.claimed_generation is null and o.due_at > excluded.due_at then o.due_at end,
        case when greatest(excluded.due_at, excluded.absent_after) > excluded.accepted_at then greatest(excluded.due_at, excluded.absent_after) end)
returning o.id, o.kind, o.organization, o.priority, (o.state = 'ready') as "ready!", o.due_at, (o.serial = 'fifo' and o.serial_key is not null) as fifo
