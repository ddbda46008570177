-- Invariant: what earlier holders of this submission saw, newest first; resolve reads it before it asks the provider.
select class as "class!", code as "code!", fenced as "fenced!", evidence::text from backline.attempt_evidence
 where operation_id = $1 and generation = $2 and submission = $3 and evidence is not null order by at desc limit 20
