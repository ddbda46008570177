-- Invariant: adopted only in the transaction that made everything presented unknown.
update backline.incarnation i set system_identifier = c.system_identifier, timeline = c.timeline, seen_at = clock_timestamp()
  from backline.current_incarnation() c
