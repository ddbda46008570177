-- Invariant: in_flight of a capped lane equals its running operations, whatever crashed between claim and finish.
update backline.ready_lane l set in_flight = (select count(*) from backline.operation o where o.lease_id is not null
        and o.kind = l.kind and o.organization = l.organization and o.priority = l.priority)
 where l.cap is not null and l.kind = any($1)
