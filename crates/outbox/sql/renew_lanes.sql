-- Invariant: a lease is lengthened only by the holder of its token and nonce; lanes not returned are lost.
update backline.outbox_lane l
   set until = clock_timestamp() + make_interval(secs => $4)
  from unnest($1::smallint[], $2::bigint[], $3::bigint[]) as mine(lane, token, nonce)
 where l.lane = mine.lane and l.token = mine.token and l.nonce = mine.nonce
returning l.lane
