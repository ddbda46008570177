-- Invariant: a decision whose COMMIT reply was lost recognizes itself by its request, and is a success.
select exists (select from backline.audit where operation_id = $1 and detail->>'request' = $2) as "mine!"
