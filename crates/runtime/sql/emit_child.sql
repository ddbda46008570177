-- Invariant: a child's id is a function of its parent, so a repeated record writes the same event or loses its transaction to the fence.
insert into backline.outbox (lane, id, event_type, schema_version, organization, project, topic, aggregate_type, aggregate_id, aggregate_version,
    correlation_id, causation_id, traceparent, occurred_at, payload)
values (backline.lane_of($3, $6, $7), $1, $2, $4, $3, $5, 'domain-events', $6, $7, $8, $9, $10, $11, clock_timestamp(), ($12::text)::jsonb)
returning backline.ring('backline_outbox')
