-- Invariant: a throttled answer slows every worker of the account: the rate halves at most once a second, and a retry-after pauses all.
update backline.provider_budget
   set current_rate = case when lowered_at is null or lowered_at < clock_timestamp() - interval '1 s' then greatest(rate_per_second / 100, current_rate / 2) else current_rate end,
       lowered_at = case when lowered_at is null or lowered_at < clock_timestamp() - interval '1 s' then clock_timestamp() else lowered_at end,
       tokens = least(tokens, 1), paused_until = greatest(paused_until, clock_timestamp() + $2::bigint * interval '1 millisecond')
 where provider_account = $1
