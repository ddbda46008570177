-- Invariant: a lease goes only when no operation is claimed under it.
delete from backline.lease l where l.id = any($1) and not exists (select from backline.operation o where o.lease_id = l.id)
