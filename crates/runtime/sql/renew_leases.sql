-- Invariant: only a lease that still exists is renewed; one that is gone was reclaimed, and its work is stopped.
update backline.lease set until = clock_timestamp() + $2::bigint * interval '1 millisecond' where id = any($1) returning id
