-- Invariant: only a lease of ours that still exists is renewed (ids repeat after a rewound sequence); one that is gone was reclaimed, and its work is stopped.
update backline.lease set until = clock_timestamp() + $2::bigint * interval '1 millisecond' where id = any($1) and process = $3 returning id
