-- $1 kind, $2 how many, $3 organizations, $4 percent that belongs to the first of them. Half have a serial key of their own.
with g as materialized (
    select g, ('00000000-0000-7000-8000-' || lpad(case when g % 100 < $4 then 1 else 1 + (g / 100 + g) % $3 end::text, 12, '0'))::uuid as organization,
        clock_timestamp() - interval '1 hour' + g * interval '1 microsecond' as at, gen_random_uuid() as id
      from generate_series(1, $2) g),
o as (insert into backline.operation (id, kind, organization, operation_key, mode, state, due_at, serial_key, serial, input, correlation_id, accepted_at)
    select id, $1, organization, g::text, 'command', 'ready', at, case when g % 2 = 0 then 's' || g end, 'exclusive', bench.payload(g), id, at from g)
insert into backline.ready_lane as l (kind, organization, priority, next_due) select $1, organization, 0, min(at) from g group by organization
on conflict (kind, organization, priority) do update set next_due = least(l.next_due, excluded.next_due)
