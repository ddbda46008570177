-- Seeded bug 15: a replay is a new operation.
update backline.operation set id = gen_random_uuid() where id = $1
