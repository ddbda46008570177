-- Invariant: all events of the array enter in the caller's transaction, or none.
select backline.emit_events($1::text::jsonb) as "ids!"
