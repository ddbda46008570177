-- $1 how many; lanes as the producers' function chooses them, one aggregate an event.
insert into backline.outbox (lane, id, event_type, schema_version, organization, project, topic, aggregate_type, aggregate_id, correlation_id,
    occurred_at, payload)
select backline.lane_of(o, 'payment', g::text), i, 'PaymentAuthorized', 1, o, o, 'domain-events', 'payment', g::text, i, clock_timestamp(), bench.payload(g)
  from (select g, ('00000000-0000-7000-8000-' || lpad((1 + g % 50)::text, 12, '0'))::uuid as o, backline.uuid7() as i from generate_series(1, $1) g) x
