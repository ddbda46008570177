-- Invariant: an attempt that did not end its operation leaves it ready, unknown, manual or dead only while its claim is current; unknown and manual
-- keep the key, but for a desired state, of which nothing is in doubt. A newer generation waits for nothing that an older one met.
with d as materialized (select * from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::boolean[], $8::boolean[],
        $9::boolean[], $10::text[], $11::text[], $12::text[])
        as d(id, token, nonce, lease_id, state, delay_ms, counted, next_submission, repeatable, class, code, detail)),
u as (update backline.operation o set state = case when o.mode = 'reconcile' and o.desired_generation > o.claimed_generation then 'ready' else d.state end::backline.operation_state,
        due_at = clock_timestamp() + case when o.mode = 'reconcile' and o.desired_generation > o.claimed_generation then 0 else d.delay_ms end * interval '1 millisecond',
        token = null, nonce = null, lease_id = null,
        attempt = case when o.mode = 'reconcile' and o.desired_generation > o.claimed_generation then 0 else o.attempt - case when d.counted or o.resolving then 0 else 1 end end,
        lookups = o.lookups + case when o.resolving and d.counted then 1 else 0 end,
        submission = o.submission + case when d.next_submission then 1 else 0 end,
        first_submitted_at = case when d.next_submission or (not o.may_have_left and (d.state = 'ready' or o.mode = 'reconcile')) then null else o.first_submitted_at end,
        may_have_left = (o.may_have_left or d.state = 'unknown') and not d.next_submission,
        repeatable = (o.repeatable and d.repeatable) or d.next_submission,
        absent_after = case when (d.state = 'unknown' and not o.resolving)
                or (o.mode = 'reconcile' and d.class = 'unknown' and greatest(k.linger, k.lookup_lag) > interval '0')
            then clock_timestamp() + k.request_timeout + greatest(k.linger, k.lookup_lag) else o.absent_after end,
        failure_class = coalesce(d.class, o.failure_class), failure_code = coalesce(d.code, o.failure_code),
        failure_detail = case when d.class is null then o.failure_detail else d.detail end,
        failed_at = case when d.class is null then o.failed_at else clock_timestamp() end,
        first_failed_at = case when d.class is null then o.first_failed_at else coalesce(o.first_failed_at, clock_timestamp()) end
     from d, backline.kind k
    where o.id = d.id and o.token = d.token and o.nonce = d.nonce and o.lease_id is not distinct from d.lease_id and k.kind = o.kind
    returning o.id, o.kind, o.organization, o.priority, o.state, o.serial_key, o.due_at,
        (o.state in ('ready', 'dead') or o.mode = 'reconcile') and o.serial is distinct from 'fifo' as frees),
h as (delete from backline.serial_hold s using u cross join lateral (select x.ctid as at from backline.serial_hold x
     where x.organization = u.organization and x.serial_key = u.serial_key and x.operation_id = u.id offset 0) x where s.ctid = x.at and u.frees)
select u.id, u.kind, u.organization, u.priority, (u.state = 'ready') as "ready!", u.due_at,
    case when u.frees then u.serial_key end as released_key from u
