-- Invariant: the age of the oldest entry that waits, by the database's clock; a lane's first entry is its oldest but for reordering.
select count(*) as "lanes!",
       coalesce(extract(epoch from clock_timestamp() - min(f.occurred_at)), 0)::double precision as "oldest_seconds!"
  from backline.outbox_lane l
 cross join lateral (select o.occurred_at from backline.outbox o
                      where o.lane = l.lane and o.seq > l.mark_seq and o.parked_at is null
                      order by o.seq limit 1) f
