-- Invariant: reads only; the names that a pause of a workload or provider account can mean.
select distinct case when $1 = 'workload' then workload else provider_account end as "name!" from backline.kind order by 1
