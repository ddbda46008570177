-- Invariant: the scan from the beginning is the truth; an entry found below a mark lowers it, whoever holds the lane.
with due as materialized (
    select lane from backline.outbox_lane
     where unmarked_at < clock_timestamp() - make_interval(secs => $1)
       for no key update skip locked)
update backline.outbox_lane l
   set unmarked_at = clock_timestamp(),
       mark_seq = least(l.mark_seq, (select o.seq - 1 from backline.outbox o
                                      where o.lane = l.lane and o.parked_at is null order by o.seq limit 1))
  from due d
 where l.lane = d.lane
