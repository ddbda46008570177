-- Invariant: a desired state sealed after an abandoned attempt is read once more when that attempt's request can no longer land.
with o as (update backline.operation set desired_generation = desired_generation + 1 where id = $1 returning id, desired_generation)
update backline.operation_identity i set last_generation = greatest(i.last_generation, o.desired_generation) from o where i.id = o.id
