-- Invariant: one seal per (event, consumer); only the transaction that made it may commit the event's intents.
insert into backline.seal (event_id, consumer) select id, $2 from unnest($1::uuid[]) as d(id) order by id
on conflict (event_id, consumer) do nothing returning event_id
