-- Invariant: an operation is accepted once: a repeated command changes nothing, a repeated reconcile request raises its generation.
with r as materialized (
    select q.*, k.mode, k.serial, k.max_input_version >= q.input_version as capable,
        clock_timestamp() + q.ord * interval '1 microsecond' as at
      from unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::int[], $8::bigint[], $9::bigint[],
        $10::timestamptz[], $11::text[], $12::smallint[], $13::uuid[], $14::uuid[], $15::text[], $16::text[]) with ordinality
        as q(id, kind, organization, project, operation_key, input, input_version, requests, delay_ms, expires_at, serial_key, priority,
            correlation_id, causation_id, traceparent, newest, ord)
      left join backline.kind k on k.kind = q.kind),
c as (insert into backline.operation_identity (id, kind, input_hash)
    select id, kind, md5(input)::uuid from r where mode is distinct from 'reconcile' order by id
    on conflict (id) do nothing returning id, 1::bigint as generation),
g as (insert into backline.operation_identity as d (id, kind, last_generation) select id, kind, requests from r where mode = 'reconcile' order by id
    on conflict (id) do update set last_generation = d.last_generation + excluded.last_generation returning d.id, d.last_generation as generation)
insert into backline.operation as o (id, kind, organization, project, operation_key, mode, state, waiting_for, priority, due_at, serial_key,
    serial, input, input_version, desired_generation, expires_at, correlation_id, causation_id, traceparent, accepted_at)
select r.id, r.kind, r.organization, r.project, r.operation_key, coalesce(r.mode, 'command'),
    case when r.capable then 'ready' else 'waiting' end::backline.operation_state, case when r.capable then null else 'capability' end, r.priority,
    r.at + coalesce(r.delay_ms, 0) * interval '1 millisecond', r.serial_key, coalesce(r.serial, 'exclusive'), case when r.mode = 'reconcile' then r.newest else r.input end::jsonb, r.input_version, i.generation,
    r.expires_at, r.correlation_id, r.causation_id, r.traceparent, r.at
  from r join (select * from c union all select * from g) i on i.id = r.id order by r.id
on conflict (id) do update set desired_generation = greatest(o.desired_generation, excluded.desired_generation), input = excluded.input,
    input_version = excluded.input_version, state = case when o.state = 'dead' then 'ready' else o.state end,
    attempt = case when o.state = 'dead' then 0 else o.attempt end, due_at = case when o.state = 'dead' then excluded.due_at else o.due_at end
returning o.id, o.kind, o.organization, o.priority, (o.state = 'ready') as "ready!", o.due_at, (o.serial = 'fifo' and o.serial_key is not null) as fifo
