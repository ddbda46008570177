-- Invariant: all workers together never take more than rate and burst allow, nor anything while the account is paused; nobody keeps more
-- of the concurrency than its share among those who are there, except for calls that are already in flight ($5).
with b as (select provider_account, least(burst, tokens + current_rate * extract(epoch from clock_timestamp() - refilled_at)) as have,
        least(rate_per_second, current_rate + rate_per_second * 0.05 * extract(epoch from clock_timestamp() - refilled_at)) as rate, concurrency, paused_until
      from backline.provider_budget where provider_account = $1 for update),
s as (select coalesce(sum(permits), 0)::int as others, count(*) + 1 as processes from backline.budget_slice where provider_account = $1 and process <> $2 and until > clock_timestamp()),
g as (select case when b.paused_until > clock_timestamp() then 0 else floor(least(b.have, $3))::int end as calls,
        greatest(0, $5, least($4, b.concurrency - s.others, ceil(b.concurrency::numeric / s.processes)::int)) as permits from b, s),
w as (update backline.provider_budget p set tokens = b.have - g.calls, current_rate = b.rate, refilled_at = clock_timestamp() from b, g where p.provider_account = b.provider_account),
i as (insert into backline.budget_slice as x (provider_account, process, permits, until) select $1, $2, g.permits, clock_timestamp() + interval '5 s' from g
     on conflict (provider_account, process) do update set permits = excluded.permits, until = excluded.until)
select g.calls as "calls!", g.permits as "permits!",
    greatest(0, extract(epoch from b.paused_until - clock_timestamp()) * 1000)::bigint as paused_ms,
    (greatest(0, 1 - (b.have - g.calls)) / b.rate * 1000)::bigint as "next_ms!" from g, b
