-- Invariant: whoever makes an operation ready lowers its lane last, under the lane's lock: next_due and the mark are never past a ready row.
insert into backline.ready_lane as l (kind, organization, priority, next_due)
select kind, organization, priority, min(due_at) from unnest($1::text[], $2::uuid[], $3::smallint[], $4::timestamptz[]) as r(kind, organization, priority, due_at)
 group by 1, 2, 3 order by 1, 2, 3
on conflict (kind, organization, priority) do update set next_due = least(l.next_due, excluded.next_due),
    mark_due = least(l.mark_due, excluded.next_due),
    mark_id = case when excluded.next_due <= l.mark_due then '00000000-0000-0000-0000-000000000000' else l.mark_id end
