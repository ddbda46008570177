-- Invariant: a record's writes happen only while the operation is locked by its current claim.
-- The lease is compared so that no index serves it: the operation is found by its id, not among all of its lease.
-- The identity first, as where requests are accepted: a generation that has to be read once more counts there (verify_later.sql).
with i as materialized (select i.id from backline.operation_identity i where i.id = $1 and $5 for no key update)
select o.desired_generation > o.claimed_generation as "newer!",
    (o.mode = 'reconcile' and coalesce(o.absent_after > o.first_submitted_at, false)) as "verify!" from backline.operation o
 where (select count(*) from i) >= 0 and o.id = $1 and o.token = $2 and o.nonce = $3 and o.lease_id is not distinct from $4 for update
