-- Invariant: an expired lease's operations leave it exactly once: ready only when nothing can have left (or reading again is safe), otherwise unknown with their key.
-- A lease goes as a whole, or its holder could renew the rest: one with an operation that somebody is ending right now waits for the next sweep, not the sweep for it.
with l as materialized (select id from backline.lease where until < clock_timestamp() order by until limit $1 for update skip locked),
a as materialized (select o.id, o.lease_id from backline.operation o join l on l.id = o.lease_id),
p as materialized (
    select o.id, o.lease_id, o.token, o.mode = 'reconcile' or (not o.resolving and not k.native_idempotency and not o.may_have_left) as clean, k.request_timeout,
        greatest(k.linger, k.lookup_lag) as quiet
      from backline.operation o join l on l.id = o.lease_id join backline.kind k using (kind) order by o.id for update of o skip locked),
f as materialized (select id from l where id not in (select a.lease_id from a where a.id not in (select p.id from p))),
u as (update backline.operation o set state = case when p.clean then 'ready' else 'unknown' end::backline.operation_state, token = null, nonce = null,
        lease_id = null, due_at = clock_timestamp(), may_have_left = not p.clean,
        first_submitted_at = case when p.clean then null else o.first_submitted_at end,
        absent_after = case when o.resolving or (p.clean and (o.mode <> 'reconcile' or p.quiet = interval '0')) then o.absent_after
            else clock_timestamp() + p.request_timeout + p.quiet end,
        failure_class = case when p.clean then 'transient' else 'unknown' end, failure_code = 'lease_expired', failure_detail = null,
        failed_at = clock_timestamp(), first_failed_at = coalesce(o.first_failed_at, clock_timestamp())
     from p where o.id = p.id and p.lease_id in (select id from f) returning o.*, p.token as held_token, p.clean),
e as (insert into backline.attempt_evidence (operation_id, generation, submission, attempt, token, fenced, class, code)
    select id, coalesce(claimed_generation, 1), submission, attempt, held_token, false, failure_class, failure_code from u),
h as (delete from backline.serial_hold s using u cross join lateral (select x.ctid as at from backline.serial_hold x
     where x.organization = u.organization and x.serial_key = u.serial_key and x.operation_id = u.id offset 0) x where s.ctid = x.at
        and u.clean and u.serial is distinct from 'fifo'),
x as (delete from backline.lease where id in (select id from f) and (select count(*) from u) >= 0)
select u.id, u.kind, u.organization, u.priority, u.clean as "ready!", u.due_at,
    case when u.clean and u.serial is distinct from 'fifo' then u.serial_key end as released_key from u
