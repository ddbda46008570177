-- Invariant: reads only; what the server says of itself.
select current_setting('server_version_num')::int as "version!", pg_is_in_recovery() as "standby!",
    current_setting('default_transaction_read_only')::boolean as "read_only!", current_setting('synchronous_commit') as "synchronous_commit!",
    current_setting('fsync')::boolean as "fsync!", extract(epoch from clock_timestamp())::double precision as "clock!",
    (select array_agg(r) from unnest(array['backline_producer', 'backline_relay', 'backline_worker', 'backline_operator']) r
      where not exists (select from pg_roles where rolname = r)) as missing_roles
