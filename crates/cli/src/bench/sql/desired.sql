-- $1 states, spread over $2 organizations; all at version 0, which nobody has asked for.
insert into bench.desired (id, organization, version)
select g, ('00000000-0000-7000-8000-' || lpad((1 + g % $2)::text, 12, '0'))::uuid, 0 from generate_series(1, $1) g
