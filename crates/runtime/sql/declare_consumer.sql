-- Invariant: once declared, an event published after the declaration is owed to the consumer until its seal.
insert into backline.required_consumer (event_type, consumer, reoffer_after) select t, $2, $3::bigint * interval '1 millisecond' from unnest($1::text[]) t
on conflict (event_type, consumer) do update set reoffer_after = excluded.reoffer_after
