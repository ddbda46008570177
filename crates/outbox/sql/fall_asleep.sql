-- Invariant: the flag is committed before the sleeper's last poll, and dies by itself with a crashed sleeper.
insert into backline.sleeper (listener, channel, asleep_until)
values ($1, $2, clock_timestamp() + make_interval(secs => $3))
on conflict (listener) do update set asleep_until = excluded.asleep_until
 where sleeper.asleep_until < clock_timestamp() + make_interval(secs => $3 / 2) -- no write per poll
