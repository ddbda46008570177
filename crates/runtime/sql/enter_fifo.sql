-- Invariant: a fifo key's operations start in order of acceptance: the first holds the key from acceptance on, the others wait.
with n as materialized (
    select o.id, o.organization, o.serial_key, o.accepted_at from backline.operation o where o.id = any($1) and o.state = 'ready'),
h as (insert into backline.serial_hold (organization, serial_key, operation_id)
    select distinct on (organization, serial_key) organization, serial_key, id from n order by organization, serial_key, accepted_at
    on conflict do nothing returning operation_id),
s as materialized (
    select x.organization, x.serial_key from (select distinct organization, serial_key from n) n cross join lateral (
        select x.* from backline.serial_hold x where x.organization = n.organization and x.serial_key = n.serial_key for share skip locked) x)
update backline.operation o set state = 'waiting', waiting_for = 'serial' from n
 where o.id = n.id and o.state = 'ready' and o.id not in (select operation_id from h)
   and (exists (select from s where s.organization = n.organization and s.serial_key = n.serial_key)
        or exists (select from h join n f on f.id = h.operation_id where f.organization = n.organization and f.serial_key = n.serial_key))
returning o.id
