-- Invariant: only a manual operation at the submission that was judged is presented again, under the next submission.
with u as (update backline.operation o set state = 'ready', due_at = clock_timestamp(), submission = o.submission + 1, first_submitted_at = null,
        may_have_left = false, absent_after = case when o.mode = 'reconcile' then o.absent_after end, repeatable = true, attempt = 0, lookups = 0, resolving = false
     where o.id = $1 and o.state = 'manual' and o.submission = $2 and o.lease_id is null
    returning o.id, o.kind, o.organization, o.priority, o.due_at, o.serial, o.serial_key),
h as (delete from backline.serial_hold s using u where s.organization = u.organization and s.serial_key = u.serial_key and s.operation_id = u.id
        and u.serial is distinct from 'fifo')
select u.kind, u.organization, u.priority, u.due_at, case when u.serial is distinct from 'fifo' then u.serial_key end as released_key from u
