-- Backline, least-privilege roles (no login): grant them to the users of each process.

do $$
declare r text;
begin
    foreach r in array array['backline_producer', 'backline_relay', 'backline_worker', 'backline_operator'] loop
        if not exists (select from pg_roles where rolname = r) then
            begin
                execute format('create role %I nologin', r);
            exception when duplicate_object or unique_violation then
                -- Roles belong to the server: another database of it is being migrated at the same time.
                null;
            end;
        end if;
    end loop;
end $$;

grant usage on schema backline to backline_producer, backline_relay, backline_worker, backline_operator;

-- Producers only insert, and read what the functions read.
grant insert on backline.outbox, backline.intake, backline.cancel_request to backline_producer;
grant select on backline.event_scope, backline.sleeper, backline.kind, backline.operation, backline.operation_history, backline.operation_identity,
    backline.intake, backline.cancel_request to backline_producer;

grant select, insert, update, delete on backline.outbox to backline_relay;
grant select, insert on backline.outbox_published to backline_relay;
grant select, delete on backline.outbox_published to backline_relay;
grant select, update on backline.outbox_lane to backline_relay;
grant usage on sequence backline.lane_token to backline_relay;
grant select, insert, update, delete on backline.sleeper to backline_relay, backline_worker;
grant select on backline.required_consumer, backline.seal, backline.parked_delivery to backline_relay;

grant select, insert, update, delete on backline.operation, backline.operation_identity, backline.intake, backline.intake_mark, backline.lease,
    backline.serial_hold, backline.ready_lane, backline.cancel_request, backline.provider_budget, backline.budget_slice, backline.pause,
    backline.kind, backline.required_consumer, backline.parked_delivery, backline.incarnation to backline_worker;
grant select, insert on backline.operation_history, backline.attempt_evidence, backline.seal, backline.outbox to backline_worker;
grant select on backline.event_scope, backline.outbox_published, backline.seal_floor to backline_worker;
grant usage on sequence backline.claim_token to backline_worker;
grant select on backline.v_unpublished, backline.v_parked, backline.v_open_operations, backline.v_requested, backline.v_outcomes_last_hour,
    backline.v_attempts_last_hour, backline.v_expired_leases, backline.v_oldest_snapshot to backline_worker, backline_relay;

grant select on all tables in schema backline to backline_operator;
grant insert on backline.cancel_request, backline.audit, backline.pause, backline.operation_history, backline.serial_hold, backline.ready_lane,
    backline.attempt_evidence to backline_operator;
grant update, delete on backline.operation, backline.pause, backline.serial_hold, backline.ready_lane, backline.parked_delivery to backline_operator;
grant update on backline.outbox, backline.provider_budget to backline_operator;
grant execute on all functions in schema backline to backline_producer, backline_relay, backline_worker, backline_operator;
-- These run as their owner: partitions belong to whoever migrated. Retention is an operator's decision.
revoke execute on function backline.drop_old(interval, interval, interval), backline.ensure_partitions(), backline.ensure_outbox_partitions(interval),
    backline.current_incarnation() from public, backline_producer, backline_relay, backline_worker;
grant execute on function backline.ensure_partitions(), backline.current_incarnation() to backline_worker, backline_relay, backline_operator;
grant execute on function backline.drop_old(interval, interval, interval) to backline_operator;

-- Relays and workers compare what was applied with what they were built with before they do anything; `backline doctor` shows it.
-- The record is made by `backline migrate` before the first migration; whoever applies these files by other means keeps one like it.
do $$
begin
    if to_regclass('backline.migration') is not null then
        grant select on backline.migration to backline_relay, backline_worker, backline_operator;
    end if;
end $$;
