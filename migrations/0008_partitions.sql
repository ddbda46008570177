-- Partitions are made without the locks of `create table … partition of`, which shut out every reader of the parent and
-- made deadlocks with whoever reads two of them, each midnight. An attached table needs only the default partition for
-- itself, for a moment, and one call attaches one: it never waits for one lock while it holds another that a reader wants.

create function backline.attach_partition(parent text, suffix text, low text, high text) returns void
language plpgsql volatile set search_path = pg_catalog as $$
begin
    execute format('create table backline.%1$s_%2$s (like backline.%1$s including defaults including constraints including indexes including storage)',
        parent, suffix);
    execute format('alter table backline.%1$s attach partition backline.%1$s_%2$s for values from (%3$L) to (%4$L)', parent, suffix, low, high);
end $$;
comment on function backline.attach_partition(text, text, text, text) is 'Makes one partition beside its parent and attaches it.';
revoke execute on function backline.attach_partition(text, text, text, text) from public, backline_producer, backline_relay, backline_worker, backline_operator;

create or replace function backline.ensure_outbox_partitions(ahead interval default '14 days') returns integer
language plpgsql volatile security definer set search_path = pg_catalog set lock_timeout = '1s' as $$
declare
    day date := (clock_timestamp() at time zone 'UTC')::date - 1;
begin
    -- Concurrent callers would both try to create the same day.
    perform pg_advisory_xact_lock(hashtext('backline.partitions'));
    while day <= (clock_timestamp() at time zone 'UTC')::date + ahead loop
        if to_regclass(format('backline.outbox_published_%s', to_char(day, 'YYYYMMDD'))) is null then
            perform backline.attach_partition('outbox_published', to_char(day, 'YYYYMMDD'),
                (day::timestamp at time zone 'UTC')::text, ((day + 1)::timestamp at time zone 'UTC')::text);
            return 1;
        end if;
        day := day + 1;
    end loop;
    return 0;
end $$;
comment on function backline.ensure_outbox_partitions(interval) is 'Creates the next missing daily partition of published events, one a call; returns how many it made, 0 when all are there.';

create or replace function backline.ensure_partitions() returns integer
language plpgsql volatile security definer set search_path = pg_catalog set lock_timeout = '1s' as $$
declare
    month date := date_trunc('month', clock_timestamp() at time zone 'UTC')::date;
    last date := (month + interval '2 months')::date;
    part text;
begin
    if backline.ensure_outbox_partitions() > 0 then
        return 1;
    end if;
    perform pg_advisory_xact_lock(hashtext('backline.partitions'));
    while month <= last loop
        foreach part in array array['operation_history_standard', 'operation_history_financial', 'attempt_evidence'] loop
            if to_regclass(format('backline.%s_%s', part, to_char(month, 'YYYYMM'))) is null then
                perform backline.attach_partition(part, to_char(month, 'YYYYMM'),
                    (month::timestamp at time zone 'UTC')::text, ((month + interval '1 month') at time zone 'UTC')::text);
                return 1;
            end if;
        end loop;
        if to_regclass(format('backline.seal_%s', to_char(month, 'YYYYMM'))) is null then
            perform backline.attach_partition('seal', to_char(month, 'YYYYMM'),
                backline.uuid7_floor(month::timestamp at time zone 'UTC')::text, backline.uuid7_floor((month + interval '1 month') at time zone 'UTC')::text);
            return 1;
        end if;
        month := (month + interval '1 month')::date;
    end loop;
    return 0;
end $$;
comment on function backline.ensure_partitions() is 'Creates the next missing partition of history, evidence, seals and published events, one a call, so that no reader and no writer meets two of its locks; run by the sweeps until it returns 0.';
