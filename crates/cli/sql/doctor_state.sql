-- Invariant: reads only; the views that metrics use say the same.
select (select count(*) from backline.kind) as "kinds!",
    (select count(distinct consumer) from backline.required_consumer) as "consumers!",
    (select count(*) from generate_series(0, 2) d where to_regclass('backline.outbox_published_'
        || to_char((clock_timestamp() at time zone 'UTC')::date + d, 'YYYYMMDD')) is null) as "days_missing!",
    (select count(*) from unnest(array['operation_history_standard',
        'operation_history_financial', 'attempt_evidence', 'seal']) t where to_regclass('backline.' || t || '_'
        || to_char(date_trunc('month', clock_timestamp() at time zone 'UTC') + interval '1 month', 'YYYYMM')) is null) as "months_missing!",
    coalesce((select max(oldest_seconds) from backline.v_unpublished), 0)::double precision as "unpublished_seconds!",
    coalesce((select sum(entries) from backline.v_unpublished), 0)::bigint as "unpublished!",
    coalesce((select sum(entries) from backline.v_parked), 0)::bigint as "parked!",
    coalesce((select sum(operations) from backline.v_expired_leases), 0)::bigint as "expired!",
    coalesce((select max(oldest_seconds) from backline.v_expired_leases where operations > 0), 0)::double precision as "expired_seconds!",
    (select oldest_seconds from backline.v_oldest_snapshot) as "snapshot_seconds!",
    coalesce((select max(oldest_seconds) from backline.v_requested where not waits_for_capability), 0)::double precision as "requested_seconds!",
    coalesce((select sum(requests) from backline.v_requested where waits_for_capability), 0)::bigint as "incapable!",
    (select count(*) from backline.operation where state = 'manual') as "manual!", (select count(*) from backline.operation where state = 'dead') as "dead!",
    (select array_agg(scope || ' ' || name || ' (' || reason || ')' order by paused_at) from backline.pause) as pauses
