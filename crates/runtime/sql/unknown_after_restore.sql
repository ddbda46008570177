-- Invariant: in a new incarnation of the database nothing that may have been presented is presented again before it is looked up.
with u as (update backline.operation o set state = 'unknown', may_have_left = true, token = null, nonce = null, lease_id = null, resolving = false,
        due_at = clock_timestamp(), first_submitted_at = coalesce(o.first_submitted_at, o.accepted_at), repeatable = false,
        absent_after = clock_timestamp() + k.request_timeout + greatest(k.linger, k.lookup_lag),
        failure_class = 'unknown', failure_code = 'database_incarnation_changed', failed_at = clock_timestamp()
     from backline.kind k where k.kind = o.kind and o.mode <> 'reconcile' and o.state in ('ready', 'running') returning o.id, o.organization, o.serial_key),
r as (update backline.operation o set state = 'ready', token = null, nonce = null, lease_id = null, due_at = clock_timestamp()
     where o.mode = 'reconcile' and o.state = 'running' returning o.id),
h as (insert into backline.serial_hold (organization, serial_key, operation_id)
    select distinct on (organization, serial_key) organization, serial_key, id from u where serial_key is not null order by 1, 2, 3 on conflict do nothing),
x as (delete from backline.lease)
select (select count(*) from u) as "unknown!", (select count(*) from r) as "ready!"
