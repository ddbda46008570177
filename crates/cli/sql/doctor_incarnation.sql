-- Invariant: reads only; another incarnation means a failover or restore that no worker has met yet.
select (i.system_identifier = c.system_identifier and i.timeline = c.timeline) as "same!", i.timeline as stored, c.timeline as "running!"
  from backline.incarnation i, backline.current_incarnation() c
