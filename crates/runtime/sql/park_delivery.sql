-- Invariant: a delivery that cannot be accepted is stored raw, once per identity, before it is acknowledged.
insert into backline.parked_delivery as p (consumer, event_id, state, reason, attributes, data, fingerprint)
values ($1, $2, $3, $4, ($5::text)::jsonb, $6, $7)
on conflict (consumer, fingerprint) do update set last_at = clock_timestamp(), arrivals = p.arrivals + 1
