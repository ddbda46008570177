-- Invariant: a lane that has a ready and due row is due, whatever crashed between making the row ready and lowering the lane.
update backline.ready_lane l set next_due = clock_timestamp(), mark_due = timestamptz '2000-01-01 00:00:00+00'
  from (select x.kind, x.organization, x.priority from backline.ready_lane x
         where x.kind = any($1) and x.next_due > clock_timestamp() for update of x skip locked) c
 where l.kind = c.kind and l.organization = c.organization and l.priority = c.priority
   and exists (select from backline.operation o where o.kind = l.kind and o.organization = l.organization and o.priority = l.priority
        and o.state = 'ready' and o.due_at < least(l.next_due, clock_timestamp()))
returning l.kind
