-- Invariant: an operation that waited for a capable build is ready once its kind and version are declared.
update backline.operation o set state = 'ready', waiting_for = null, due_at = greatest(o.due_at, clock_timestamp()), mode = k.mode, serial = k.serial
  from backline.kind k
 where o.state = 'waiting' and o.waiting_for = 'capability' and k.kind = o.kind and k.kind = any($1) and o.input_version <= k.max_input_version
returning o.id, o.kind, o.organization, o.priority, o.due_at, (o.serial = 'fifo' and o.serial_key is not null) as fifo
