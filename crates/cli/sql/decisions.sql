-- Invariant: reads only; what people did to the operation.
select at, actor, action, reason, detail from backline.audit where operation_id = $1 order by id
