-- Invariant: the metric is the view.
select (select coalesce(sum(operations), 0)::bigint from backline.v_expired_leases) as "operations!",
    (select oldest_seconds from backline.v_oldest_snapshot) as "snapshot_seconds!"
