-- Invariant: a capped lane gives its room back with the transaction that ends the claim; lanes are touched last and in order.
with q as materialized (
    select l.kind, l.organization, l.priority, n.n from (
        select kind, organization, priority, count(*)::int as n from unnest($1::text[], $2::uuid[], $3::smallint[]) as e(kind, organization, priority)
         group by 1, 2, 3) n
      join backline.ready_lane l on l.kind = n.kind and l.organization = n.organization and l.priority = n.priority
     where l.cap is not null order by 1, 2, 3 for update of l)
update backline.ready_lane l set in_flight = greatest(0, l.in_flight - q.n) from q
 where l.kind = q.kind and l.organization = q.organization and l.priority = q.priority
