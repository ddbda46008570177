-- Invariant: only an operation of which nothing is in doubt is ready again, dead or a desired state that asked for a person: same id, same
-- submission, attempts from zero.
update backline.operation o set state = 'ready', attempt = 0, lookups = 0, due_at = clock_timestamp()
 where o.id = $1 and (o.state = 'dead' or (o.state = 'manual' and o.mode = 'reconcile')) and o.lease_id is null and (o.mode = 'reconcile' or not o.may_have_left)
returning o.kind, o.organization, o.priority, o.due_at
