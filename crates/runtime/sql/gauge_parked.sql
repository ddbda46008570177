-- Invariant: the metric is the view.
select source as "source!", name as "name!", sum(entries)::bigint as "entries!", max(oldest_seconds) as "oldest_seconds!" from backline.v_parked group by 1, 2
