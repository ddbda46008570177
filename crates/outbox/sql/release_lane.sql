-- Invariant: only the holder gives a lane back; the mark only rises, and not past a scan from the beginning meanwhile.
update backline.outbox_lane
   set until = clock_timestamp(), owner = null, nonce = 0, -- a renewal that is under way must not revive it
       mark_seq = case when extract(epoch from unmarked_at)::double precision = $5 then greatest(mark_seq, $4) else mark_seq end
 where lane = $1 and token = $2 and nonce = $3
