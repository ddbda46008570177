-- Seeded bug 12, first half: the snapshot.
select id from backline.lease where until < clock_timestamp()
