-- Seeded bug 21: the identity goes with the row of the hot table.
delete from backline.operation_identity where id = any($1)
