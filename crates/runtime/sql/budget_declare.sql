-- Invariant: limits follow the newest declaration; what is left in the bucket stays.
insert into backline.provider_budget as b (provider_account, rate_per_second, burst, concurrency, current_rate, tokens) values ($1, $2, $3, $4, $2, $3)
on conflict (provider_account) do update set rate_per_second = excluded.rate_per_second, burst = excluded.burst, concurrency = excluded.concurrency,
    current_rate = least(b.current_rate, excluded.rate_per_second)
