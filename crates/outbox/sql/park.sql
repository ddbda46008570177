-- Invariant: an entry is set aside with its reason, by the lane's holder; it stays visible and can be offered again.
with held as materialized (
    select lane from backline.outbox_lane where lane = $1 and token = $2 and nonce = $3 for no key update),
parked as (
    update backline.outbox o
       set parked_at = clock_timestamp(), parked_reason = p.reason, failures = o.failures + 1
      from held h, unnest($4::bigint[], $5::text[]) as p(seq, reason)
     where o.lane = h.lane and o.seq = p.seq and o.parked_at is null
    returning 1)
select exists (select from held) as "held!", (select count(*) from parked) as "parked!"
