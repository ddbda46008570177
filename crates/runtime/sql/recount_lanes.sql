-- Invariant: in_flight of a capped lane equals its running operations, whatever crashed between claim and finish.
with q as materialized (select kind, organization, priority from backline.ready_lane where cap is not null and kind = any($1) order by 1, 2, 3 for update)
update backline.ready_lane l set in_flight = (select count(*) from backline.operation o where o.lease_id is not null
        and o.kind = l.kind and o.organization = l.organization and o.priority = l.priority)
  from q where l.kind = q.kind and l.organization = q.organization and l.priority = q.priority
