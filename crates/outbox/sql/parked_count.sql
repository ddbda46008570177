-- Invariant: what is set aside is counted until somebody decides about it.
select count(*) as "parked!" from backline.outbox where parked_at is not null
