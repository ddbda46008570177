-- Invariant: a request for an operation enters the intake in the caller's transaction; nobody waits for an operation.
select backline.enqueue_operation(kind => $1, organization => $2, operation_key => $3, input => $4::text::jsonb, project => $5,
    input_version => $6, delay => $7, expires_at => $8, serial_key => $9, priority => $10, correlation_id => $11,
    causation_id => $12, traceparent => $13) as "id!"
