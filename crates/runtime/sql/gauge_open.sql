-- Invariant: the metric is the view.
select workload as "workload!", provider_account as "provider_account!", kind as "kind!", state as "state!", failure_class as "failure_class!",
    sum(operations)::bigint as "operations!", max(oldest_seconds) as "oldest_seconds!" from backline.v_open_operations group by 1, 2, 3, 4, 5
