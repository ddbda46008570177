-- Invariant: an event enters the outbox in the caller's transaction, through the one function that checks it.
select backline.emit_event(event_type => $1, organization => $2, project => $3, aggregate_type => $4, aggregate_id => $5,
    payload => $6::text::jsonb, schema_version => $7, aggregate_version => $8, correlation_id => $9, causation_id => $10,
    traceparent => $11, tracestate => $12, event_id => $13, topic => coalesce($14, 'domain-events')) as "id!"
