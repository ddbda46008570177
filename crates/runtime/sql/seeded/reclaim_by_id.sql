-- Seeded bug 12, second half: leases of an older snapshot are emptied by id, renewed or not.
update backline.lease set until = '-infinity' where id = any($1)
