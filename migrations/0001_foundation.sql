-- Backline, foundation: the schema, its closed types, what workers declare, and the switches of operators.
-- Migrations are append-only. Every time stamp is timestamptz and comes from the database's clock.

create schema if not exists backline; -- the record of applied migrations made it already
comment on schema backline is 'Durable side effects: outbox, operations, claims, outcomes. Applications call its functions and write nothing else here.';

create type backline.operation_mode as enum ('command', 'reconcile', 'event');
comment on type backline.operation_mode is 'What inputs mean: command = frozen instruction, reconcile = reread desired state, event = frozen delivery decision.';

create type backline.operation_state as enum ('waiting', 'ready', 'running', 'unknown', 'manual', 'dead');
comment on type backline.operation_state is 'Open states. waiting: serial key, capability or pause in the way. ready: may be claimed when due. running: one claim holds it. unknown: the provider may have acted, nobody may submit anew before it is resolved. manual: only a person may decide. dead: will not be tried again by itself, and nothing may have left.';

create type backline.outcome_kind as enum ('succeeded', 'rejected', 'obsolete', 'cancelled', 'expired', 'discarded', 'superseded');
comment on type backline.outcome_kind is 'How a generation ended. rejected: the provider or a rule refused for good. obsolete: a named rule found it no longer wanted. superseded: replaced by a corrected, newly authorized operation.';

create type backline.serial_mode as enum ('exclusive', 'fifo');
comment on type backline.serial_mode is 'exclusive: operations of one key never overlap. fifo: also in order of acceptance; the head keeps its place through retries.';

create table backline.kind (
    kind text primary key check (length(kind) <= 96 and kind ~ '^[a-z][a-z0-9_.-]*$'),
    workload text not null,
    mode backline.operation_mode not null,
    provider_account text not null,
    serial backline.serial_mode,
    native_idempotency boolean not null,
    financial boolean not null default false,
    irreversible boolean not null default false,
    idempotency_window interval,
    linger interval not null default '0 s',
    lookup_lag interval not null default '0 s',
    request_timeout interval not null,
    max_input_version integer not null default 1,
    keep_input boolean not null default true,
    retention_class text not null default 'standard',
    identity_window interval check (not (financial and identity_window is not null)),
    declared_at timestamptz not null default clock_timestamp()
);
comment on table backline.kind is 'Operation kinds, declared by the workload that performs them, at its start.';
comment on column backline.kind.kind is 'Name, lower case, for example stripe.transfer.';
comment on column backline.kind.workload is 'Deployable unit that performs it.';
comment on column backline.kind.mode is 'What its inputs mean.';
comment on column backline.kind.provider_account is 'Provider and account whose budget and breaker it shares, for example stripe:platform.';
comment on column backline.kind.serial is 'How its serial keys exclude; null when it has none.';
comment on column backline.kind.native_idempotency is 'The provider deduplicates by our key: repeating the same submission is safe inside idempotency_window.';
comment on column backline.kind.financial is 'Moves money: its identities are never pruned (obligation D13).';
comment on column backline.kind.irreversible is 'Dead-letter actions on it need a second person.';
comment on column backline.kind.idempotency_window is 'How long after the first submission the same key may be repeated; null without native idempotency.';
comment on column backline.kind.linger is 'How late a request may still apply at the provider after the caller gave up.';
comment on column backline.kind.lookup_lag is 'How long an applied effect may stay invisible to a lookup.';
comment on column backline.kind.request_timeout is 'Bound of one provider call.';
comment on column backline.kind.max_input_version is 'Highest input version this workload reads; newer requests stay in intake, untouched.';
comment on column backline.kind.keep_input is 'Whether history keeps the frozen input.';
comment on column backline.kind.retention_class is 'History partition family.';
comment on column backline.kind.identity_window is 'How long identities are kept after the last outcome; null = for ever.';
comment on column backline.kind.declared_at is 'Last declaration.';

create table backline.required_consumer (
    event_type text not null,
    consumer text not null,
    reoffer_after interval not null default '10 min',
    declared_at timestamptz not null default clock_timestamp(),
    primary key (event_type, consumer)
);
comment on table backline.required_consumer is 'Consumers without whose seal a published event is unfinished; the re-offer sweep compares.';
comment on column backline.required_consumer.event_type is 'Event type, for example PaymentAuthorized.';
comment on column backline.required_consumer.consumer is 'Consumer name.';
comment on column backline.required_consumer.reoffer_after is 'How long after publication a missing seal makes the sweep offer the event again.';
comment on column backline.required_consumer.declared_at is 'When the requirement began: earlier events are not owed to it.';

create table backline.event_scope (
    event_type text primary key,
    scope text not null check (scope in ('organization', 'platform')),
    reason text not null,
    carries_secrets boolean not null default false
);
comment on table backline.event_scope is 'Event types whose scope is not the default (project). platform is only the three types of obligation I25.';
comment on column backline.event_scope.event_type is 'Event type.';
comment on column backline.event_scope.scope is 'organization: no project. platform: neither organization nor project.';
comment on column backline.event_scope.reason is 'Why the default does not fit.';
comment on column backline.event_scope.carries_secrets is 'Payload has addresses or bearer links: refused until payload encryption exists (architecture, section 10).';
insert into backline.event_scope values
    ('MagicLinkEmailRequested', 'platform', 'sent before anybody belongs to an organization', true),
    ('InvitationEmailRequested', 'platform', 'sent before the invited person belongs to an organization', true),
    ('UserDeletionRequested', 'platform', 'a user spans organizations', false);

create table backline.pause (
    scope text not null check (scope in ('workload', 'provider_account', 'organization')),
    name text not null,
    reason text not null,
    paused_by text not null,
    paused_at timestamptz not null default clock_timestamp(),
    primary key (scope, name)
);
comment on table backline.pause is 'What operators, or a provider''s refusal of our credentials, have paused. Claims skip it; nothing is lost.';
comment on column backline.pause.scope is 'What is paused.';
comment on column backline.pause.name is 'Which one: workload name, provider account, or organization id.';
comment on column backline.pause.reason is 'Shown to whoever asks why work does not move.';
comment on column backline.pause.paused_by is 'Person, or breaker for the runtime itself.';
comment on column backline.pause.paused_at is 'Since when.';

create table backline.provider_budget (
    provider_account text primary key,
    rate_per_second double precision not null check (rate_per_second > 0),
    burst double precision not null check (burst >= 1),
    concurrency integer not null check (concurrency >= 1),
    current_rate double precision not null,
    tokens double precision not null,
    refilled_at timestamptz not null default clock_timestamp(),
    paused_until timestamptz,
    lowered_at timestamptz
);
comment on table backline.provider_budget is 'One token bucket per provider account for the whole fleet; workers lease slices of it.';
comment on column backline.provider_budget.provider_account is 'Provider and account.';
comment on column backline.provider_budget.rate_per_second is 'Calls per second we may make at most.';
comment on column backline.provider_budget.burst is 'Bucket size in calls.';
comment on column backline.provider_budget.concurrency is 'Calls in flight at most, fleet-wide.';
comment on column backline.provider_budget.current_rate is 'Rate in force: halved by a throttled answer, recovering additively.';
comment on column backline.provider_budget.tokens is 'Calls left in the bucket at refilled_at.';
comment on column backline.provider_budget.refilled_at is 'When tokens was computed.';
comment on column backline.provider_budget.paused_until is 'No call before this (retry-after of a throttled answer).';
comment on column backline.provider_budget.lowered_at is 'Last time the rate was lowered: one storm lowers once a second.';

create table backline.budget_slice (
    provider_account text not null references backline.provider_budget,
    process uuid not null,
    permits integer not null,
    until timestamptz not null,
    primary key (provider_account, process)
);
comment on table backline.budget_slice is 'Concurrency leased by one process; an expired slice counts as free.';
comment on column backline.budget_slice.provider_account is 'Provider and account.';
comment on column backline.budget_slice.process is 'Process instance.';
comment on column backline.budget_slice.permits is 'Calls it may have in flight.';
comment on column backline.budget_slice.until is 'Lease end.';

create table backline.sleeper (
    listener uuid primary key,
    channel text not null,
    asleep_until timestamptz not null
) with (fillfactor = 50);
comment on table backline.sleeper is 'Doorbell. A listener that found nothing commits its row here, polls once more, then waits for a notification on its channel; producers notify only while a row is live. Under load there is no row and no commit pays for a notification.';
comment on column backline.sleeper.listener is 'Process instance and purpose.';
comment on column backline.sleeper.channel is 'backline_outbox (relays) or backline_intake (workers).';
comment on column backline.sleeper.asleep_until is 'The flag dies with a crashed listener at this time; live ones renew it.';

create table backline.incarnation (
    only_one boolean primary key default true check (only_one),
    system_identifier bigint not null,
    timeline bigint not null,
    seen_at timestamptz not null default clock_timestamp()
);
comment on table backline.incarnation is 'Which database life the operations were last known to belong to: a failover or restore may have lost commits and rewound sequences.';
comment on column backline.incarnation.only_one is 'Single row.';
comment on column backline.incarnation.system_identifier is 'pg_control_system of the cluster.';
comment on column backline.incarnation.timeline is 'WAL timeline; rises at every promotion.';
comment on column backline.incarnation.seen_at is 'When it was adopted.';

create function backline.current_incarnation() returns table (system_identifier bigint, timeline bigint)
language sql volatile security definer set search_path = pg_catalog as $$
    select c.system_identifier, ('x' || lpad(left(pg_walfile_name(pg_current_wal_insert_lsn()), 8), 16, '0'))::bit(64)::bigint
      from pg_control_system() c
$$;
comment on function backline.current_incarnation() is 'System identifier and WAL timeline of the running server; fails on a standby, where nothing may be claimed.';

create function backline.incarnation_adopted() returns boolean language plpgsql volatile as $$
begin
    -- A session ends with the life of its server: it need ask only once (reading the control file takes 0.2 ms).
    if current_setting('backline.incarnation_adopted', true) = 'yes' then
        return true;
    end if;
    if not exists (select from backline.incarnation i, backline.current_incarnation() c
            where i.system_identifier = c.system_identifier and i.timeline = c.timeline) then
        return false;
    end if;
    perform set_config('backline.incarnation_adopted', 'yes', false);
    return true;
end $$;
comment on function backline.incarnation_adopted() is 'Whether the running server is the life of the database that was adopted; without that nothing may be claimed.';

insert into backline.incarnation (system_identifier, timeline) select * from backline.current_incarnation();
