-- Invariant: all events of the arrays enter in the caller's transaction, or none.
select backline.emit_events($1::text[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[]::jsonb[], $7::int[], $8::bigint[],
    $9::uuid[], $10::uuid[], $11::text[], $12::text[], $13::uuid[], $14::text[]) as "ids!"
