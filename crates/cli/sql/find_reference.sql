-- Invariant: reads only; nothing indexes what providers returned, so every kept partition of history is read.
select id as "id!" from (
    select h.id, h.finished_at as at from backline.operation_history h where strpos(h.output::text, $1) > 0 or h.operation_key = $1
    union all select o.id, o.accepted_at from backline.operation o where o.operation_key = $1
    union all select e.operation_id, e.at from backline.attempt_evidence e where strpos(e.evidence::text, $1) > 0
    union all select o.id, o.occurred_at from backline.outbox o where o.aggregate_id = $1
    union all select p.id, p.occurred_at from backline.outbox_published p where p.aggregate_id = $1) found
 group by id order by min(at) limit 20
