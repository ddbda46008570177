-- Seeded bug 26: an operation in doubt gives its serial key up, as after any other failure.
with u as (select o.id, o.organization, o.serial_key from backline.operation o where o.id = any($1) and o.state = 'unknown' and o.serial_key is not null)
delete from backline.serial_hold s using u where s.organization = u.organization and s.serial_key = u.serial_key and s.operation_id = u.id
returning s.operation_id, s.serial_key
