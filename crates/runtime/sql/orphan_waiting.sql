-- Invariant: nobody waits for a key that nobody holds.
select distinct o.organization as "organization!", o.serial_key as "serial_key!" from backline.operation o
 where o.state = 'waiting' and o.waiting_for = 'serial' and o.kind = any($1)
   and not exists (select from backline.serial_hold h where h.organization = o.organization and h.serial_key = o.serial_key) limit 500
