-- Invariant: an idle worker sleeps no longer than until the next ready or unknown operation of its kinds is due; null = nothing is.
select (extract(epoch from d.due - clock_timestamp()) * 1000)::bigint as in_ms from (select least(
    (select min(l.next_due) from backline.ready_lane l where l.kind = any($1) and l.next_due < 'infinity' and (l.cap is null or l.in_flight < l.cap)),
    (select min(o.due_at) from backline.operation o where o.kind = any($1) and o.state = 'unknown')) as due) d
