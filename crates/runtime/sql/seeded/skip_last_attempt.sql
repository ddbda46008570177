-- Seeded bug 13: an operation whose last attempt (20 by default) died with its process is passed over by the sweep.
update backline.operation set lease_id = null
 where attempt >= 20 and lease_id in (select id from backline.lease where until < clock_timestamp())
