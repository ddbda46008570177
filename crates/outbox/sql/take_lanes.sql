-- Invariant: a lane is taken only after its lease ended, under a token that nobody had before.
with work as materialized (
    select l.lane
      from backline.outbox_lane l
     where l.until <= clock_timestamp()
       and exists (select from backline.outbox o
                    where o.lane = l.lane and o.seq > l.mark_seq and o.parked_at is null and o.topic <> all ($5::text[]))
     order by l.until, l.lane -- the lane that has waited longest first, so that none starves
     limit $1
       for no key update of l skip locked)
update backline.outbox_lane l
   set owner = $2, nonce = $3, token = nextval('backline.lane_token'), until = clock_timestamp() + make_interval(secs => $4)
  from work w
 where l.lane = w.lane and l.until <= clock_timestamp()
returning l.lane, l.token, l.nonce, l.mark_seq,
       extract(epoch from l.unmarked_at)::double precision as "scanned_at!" -- a number, because it may be -infinity
