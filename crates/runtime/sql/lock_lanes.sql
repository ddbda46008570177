-- Invariant: a lane is claimed from by one claimer at a time; lanes go round by when they were last claimed; paused ones and full ones rest.
-- Tells, too, whether this life of the database was adopted: nothing may be claimed otherwise (same_incarnation.sql).
select l.kind, l.organization, l.priority, l.cap - l.in_flight as room, case when $3 then timestamptz '2000-01-01 00:00:00+00' else l.mark_due end as "mark_due!", l.mark_id,
       (select backline.incarnation_adopted()) as "same!"
  from backline.ready_lane l
 where l.kind = any($1) and l.next_due <= statement_timestamp() and (l.cap is null or l.in_flight < l.cap)
   and not exists (select from backline.pause p where p.scope = 'organization' and p.name = l.organization::text)
   and not exists (select from backline.pause p join backline.kind k on (p.scope = 'provider_account' and p.name = k.provider_account)
        or (p.scope = 'workload' and p.name = k.workload) where k.kind = l.kind)
 order by l.priority, l.last_claimed limit $2 for update of l skip locked
