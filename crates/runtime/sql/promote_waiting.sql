-- Invariant: a released key goes to its oldest waiting operation: ready, for fifo with the hold already its own. Runs after the release, in the same transaction.
with n as materialized (
    select k.organization, k.serial_key, w.id, w.serial from (select distinct * from unnest($1::uuid[], $2::text[]) as k(organization, serial_key)) k
     cross join lateral (select o.id, o.serial from backline.operation o
         where o.organization = k.organization and o.serial_key = k.serial_key and o.state = 'waiting' and o.waiting_for = 'serial'
         order by o.accepted_at, o.id limit 1 for update) w),
h as (insert into backline.serial_hold (organization, serial_key, operation_id)
    select organization, serial_key, id from n where serial = 'fifo' order by 1, 2 on conflict do nothing returning operation_id)
update backline.operation o set state = 'ready', waiting_for = null, due_at = greatest(o.due_at, clock_timestamp()) from n
 where o.id = n.id and (n.serial is distinct from 'fifo' or n.id in (select operation_id from h))
returning o.kind, o.organization, o.priority, o.due_at
