-- Invariant: what waited for a capable build is accepted by one process at a time, and leaves the wait only with its acceptance.
select id, event_id, attributes::text as "attributes!", data from backline.parked_delivery
 where consumer = $1 and state = 'waiting-for-capability' and id > $2 order by id limit $3 for update skip locked
