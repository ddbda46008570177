-- Invariant: a person's pause replaces the breaker's, so that a new start does not lift it, and nobody's replaces a person's.
insert into backline.pause as p (scope, name, reason, paused_by) values ($1, $2, $3, $4)
on conflict (scope, name) do update set reason = excluded.reason, paused_by = excluded.paused_by, paused_at = clock_timestamp()
where p.paused_by = 'breaker'
