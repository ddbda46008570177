-- Invariant: an accepted delivery stays on record, with the seal as its completion.
update backline.parked_delivery set state = 'accepted', last_at = clock_timestamp() where id = any($1)
