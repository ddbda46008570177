-- Invariant: a wish to cancel ends what is not started; anything that may have been applied only carries the wish.
with c as materialized (select operation_id, reason from backline.cancel_request order by operation_id limit $1 for update skip locked),
p as materialized (select o.id from backline.operation o join c on c.operation_id = o.id where o.state in ('ready', 'waiting') order by o.id for update of o skip locked),
k as (delete from backline.operation o using p, c where o.id = p.id and c.operation_id = o.id and o.state in ('ready', 'waiting') returning o.*, c.reason),
h as (delete from backline.serial_hold s using k cross join lateral (select x.ctid as at from backline.serial_hold x
     where x.organization = k.organization and x.serial_key = k.serial_key and x.operation_id = k.id offset 0) x where s.ctid = x.at),
i as (insert into backline.operation_history (id, generation, kind, organization, project, operation_key, occurrence, mode, outcome, code, detail, input,
        submission, attempt, serial_key, correlation_id, causation_id, traceparent, accepted_at, first_failed_at, retention_class)
    select k.id, k.desired_generation, k.kind, k.organization, k.project, k.operation_key, k.occurrence, k.mode, 'cancelled', 'cancel_requested', k.reason,
        case when coalesce(q.keep_input, true) then k.input end, k.submission, k.attempt, k.serial_key, k.correlation_id, k.causation_id, k.traceparent,
        k.accepted_at, k.first_failed_at, coalesce(q.retention_class, 'standard') from k left join backline.kind q using (kind)),
f as (update backline.operation o set cancel_requested_at = coalesce(o.cancel_requested_at, clock_timestamp()) from c
     where o.id = c.operation_id and o.state in ('running', 'unknown', 'manual', 'dead') returning o.id),
x as (delete from backline.cancel_request r using c where r.operation_id = c.operation_id
        and (c.operation_id in (select id from k) or c.operation_id in (select id from f)
            or (exists (select from backline.operation_history y where y.id = c.operation_id)
                and not exists (select from backline.operation o where o.id = c.operation_id))
            or r.requested_at < clock_timestamp() - interval '7 days'))
select k.id, k.organization, k.serial_key from k
