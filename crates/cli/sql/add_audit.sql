-- Invariant: committed with the decision it describes.
insert into backline.audit (actor, action, operation_id, reason, detail) values ($1, $2, $3, $4, ($5::text)::jsonb)
