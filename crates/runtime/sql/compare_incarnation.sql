-- Invariant: one process at a time compares and adopts; the others wait and find it adopted.
select (i.system_identifier = c.system_identifier and i.timeline = c.timeline) as "same!"
  from backline.incarnation i, backline.current_incarnation() c for update of i
