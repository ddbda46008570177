-- Invariant: a record's writes happen only while the operation is locked by its current claim.
select o.desired_generation > o.claimed_generation as "newer!", 
    (o.mode = 'reconcile' and coalesce(o.absent_after > o.first_submitted_at, false)) as "verify!" from backline.operation o join backline.lease l on l.id = o.lease_id
 where o.id = $1 and o.token = $2 and o.nonce = $3 and l.id = $4 for update of o for share of l
