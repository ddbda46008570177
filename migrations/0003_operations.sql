-- Backline, operations: what is owed, who works on it, how it ended.

create table backline.intake (
    seq bigint generated always as identity primary key,
    operation_id uuid not null,
    kind text not null,
    organization uuid not null,
    project uuid,
    operation_key text not null,
    input jsonb not null,
    input_version integer not null,
    delay interval,
    expires_at timestamptz check (expires_at between '2000-01-01 00:00:00+00' and '9999-01-01 00:00:00+00'),
    serial_key text,
    priority smallint not null,
    correlation_id uuid not null,
    causation_id uuid,
    traceparent text,
    encryption_key_ref text,
    requested_at timestamptz not null default clock_timestamp()
);
alter table backline.intake set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
create index intake_fold on backline.intake (kind, seq);
create index intake_operation on backline.intake (operation_id);
comment on table backline.intake is 'Requests of producers, append-only for them. The runtime folds committed rows into operations when it claims; a kind or version nobody can perform waits here.';
comment on column backline.intake.seq is 'Insertion order; taken before commit, so never a watermark.';
comment on column backline.intake.operation_id is 'Deterministic: operation_id(organization, kind, key, occurrence).';
comment on column backline.intake.kind is 'Operation kind.';
comment on column backline.intake.organization is 'Tenant.';
comment on column backline.intake.project is 'Project.';
comment on column backline.intake.operation_key is 'Producer''s name for the effect inside (organization, kind); hashed when longer than an index row allows.';
comment on column backline.intake.input is 'command and event: frozen inputs. reconcile: ids only.';
comment on column backline.intake.input_version is 'Version of the input''s shape, from 1.';
comment on column backline.intake.delay is 'Not before this long after acceptance.';
comment on column backline.intake.expires_at is 'Not started after this.';
comment on column backline.intake.serial_key is 'Operations of one (organization, serial key) never overlap, across kinds.';
comment on column backline.intake.priority is 'Lower is claimed first; 0 to 9.';
comment on column backline.intake.correlation_id is 'Business request.';
comment on column backline.intake.causation_id is 'Event or operation that caused it.';
comment on column backline.intake.traceparent is 'W3C trace context.';
comment on column backline.intake.encryption_key_ref is 'Reserved: per-subject key of an encrypted input.';
comment on column backline.intake.requested_at is 'Clock at insertion; the fold''s mark trails it by the producers'' commit lag.';

create table backline.intake_mark (
    kind text primary key,
    mark_seq bigint not null default 0,
    unmarked_at timestamptz not null default '-infinity'
) with (fillfactor = 50);
comment on table backline.intake_mark is 'Where the fold of a kind starts scanning: dead index entries before it would slow every claim while somebody holds a snapshot.';
comment on column backline.intake_mark.kind is 'Operation kind.';
comment on column backline.intake_mark.mark_seq is 'Everything at or before it was folded, or is older than the producers'' commit lag.';
comment on column backline.intake_mark.unmarked_at is 'Last scan that ignored the mark: the truth.';

create table backline.cancel_request (
    operation_id uuid primary key,
    reason text not null,
    requested_at timestamptz not null default clock_timestamp()
);
comment on table backline.cancel_request is 'Wishes to cancel, appended by producers and operators; honored by the runtime only while nothing can have been applied.';
comment on column backline.cancel_request.operation_id is 'Which operation.';
comment on column backline.cancel_request.reason is 'Why.';
comment on column backline.cancel_request.requested_at is 'When.';

create table backline.operation_identity (
    id uuid primary key,
    kind text not null,
    last_generation bigint not null default 1,
    input_hash uuid,
    accepted_at timestamptz not null default clock_timestamp()
) partition by hash (id);
comment on table backline.operation_identity is 'Every operation ever accepted; asking twice is asking once. Never moved; pruned only for kinds that declare a window, never for financial ones.';
comment on column backline.operation_identity.id is 'Operation id.';
comment on column backline.operation_identity.kind is 'Operation kind.';
comment on column backline.operation_identity.last_generation is 'Highest generation ever asked for.';
comment on column backline.operation_identity.input_hash is 'md5 of a command''s frozen input: a second request with other inputs is recorded, never executed.';
comment on column backline.operation_identity.accepted_at is 'First acceptance.';
create table backline.operation_identity_0 partition of backline.operation_identity for values with (modulus 8, remainder 0);
create table backline.operation_identity_1 partition of backline.operation_identity for values with (modulus 8, remainder 1);
create table backline.operation_identity_2 partition of backline.operation_identity for values with (modulus 8, remainder 2);
create table backline.operation_identity_3 partition of backline.operation_identity for values with (modulus 8, remainder 3);
create table backline.operation_identity_4 partition of backline.operation_identity for values with (modulus 8, remainder 4);
create table backline.operation_identity_5 partition of backline.operation_identity for values with (modulus 8, remainder 5);
create table backline.operation_identity_6 partition of backline.operation_identity for values with (modulus 8, remainder 6);
create table backline.operation_identity_7 partition of backline.operation_identity for values with (modulus 8, remainder 7);

create sequence backline.claim_token;
comment on sequence backline.claim_token is 'Fencing tokens of claims.';

create table backline.lease (
    id bigint generated always as identity primary key,
    process uuid not null,
    owner text not null,
    until timestamptz not null
) with (fillfactor = 70);
comment on table backline.lease is 'One row per (process, claim batch): one update renews a batch. Finishing takes it FOR SHARE, reclaiming locks it.';
comment on column backline.lease.id is 'Lease id.';
comment on column backline.lease.process is 'Process instance; has a per-process random part.';
comment on column backline.lease.owner is 'Host and process id, for people.';
comment on column backline.lease.until is 'Lease end by the database''s clock.';

create table backline.operation (
    id uuid primary key,
    kind text not null,
    organization uuid not null,
    project uuid,
    operation_key text not null,
    occurrence bigint not null default 0,
    mode backline.operation_mode not null,
    state backline.operation_state not null,
    waiting_for text check (waiting_for in ('serial', 'capability')),
    priority smallint not null default 0,
    due_at timestamptz not null,
    serial_key text,
    serial backline.serial_mode,
    input jsonb not null,
    input_version integer not null default 1,
    desired_generation bigint not null default 1,
    claimed_generation bigint,
    submission integer not null default 1,
    first_submitted_at timestamptz,
    may_have_left boolean not null default false,
    absent_after timestamptz,
    repeatable boolean not null default true,
    attempt integer not null default 0,
    lookups integer not null default 0,
    resolving boolean not null default false,
    token bigint,
    nonce bigint,
    lease_id bigint,
    cancel_requested_at timestamptz,
    expires_at timestamptz check (expires_at between '2000-01-01 00:00:00+00' and '9999-01-01 00:00:00+00'),
    failure_class text,
    failure_code text,
    failure_detail text,
    failed_at timestamptz,
    first_failed_at timestamptz,
    correlation_id uuid not null,
    causation_id uuid,
    traceparent text,
    encryption_key_ref text,
    accepted_at timestamptz not null default clock_timestamp()
) with (fillfactor = 80);
alter table backline.operation set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
-- Eligibility index. Its predicate is written literally in every claim.
create index operation_ready on backline.operation (kind, organization, priority, due_at, id) where state = 'ready';
-- Gated on lease_id, not on state: a finish that says state = 'running' would make the planner join through it (peers.md, planner trap).
create index operation_lease on backline.operation (lease_id) where lease_id is not null;
create index operation_waiting on backline.operation (organization, serial_key, accepted_at, id) where state = 'waiting';
create index operation_unknown on backline.operation (kind, due_at, id) where state = 'unknown';
create index operation_stuck on backline.operation (kind, state, id) where state in ('manual', 'dead');
comment on table backline.operation is 'Open operations: effects owed and not finished. Finished ones move to operation_history in the finishing statement.';
comment on column backline.operation.id is 'Deterministic from (organization, kind, operation key, occurrence).';
comment on column backline.operation.kind is 'Operation kind.';
comment on column backline.operation.organization is 'Tenant.';
comment on column backline.operation.project is 'Project.';
comment on column backline.operation.operation_key is 'Producer''s name for the effect.';
comment on column backline.operation.occurrence is 'Reserved for coalescing: which occurrence of a debounced or throttled key; part of the id.';
comment on column backline.operation.mode is 'What the inputs mean.';
comment on column backline.operation.state is 'See the type.';
comment on column backline.operation.waiting_for is 'What a waiting operation waits for.';
comment on column backline.operation.priority is 'Lower is claimed first.';
comment on column backline.operation.due_at is 'ready and unknown: not before this. Always at or after the clock of the statement that set it.';
comment on column backline.operation.serial_key is 'Exclusion across kinds inside the organization.';
comment on column backline.operation.serial is 'How the key excludes.';
comment on column backline.operation.input is 'Frozen inputs, or the desired state''s ids.';
comment on column backline.operation.input_version is 'Version of the input''s shape.';
comment on column backline.operation.desired_generation is 'How many times the desired state has been asked for; 1 for commands and events.';
comment on column backline.operation.claimed_generation is 'Generation the current claim works on.';
comment on column backline.operation.submission is 'Which authorized presentation to the provider; rises only after a definite non-application.';
comment on column backline.operation.first_submitted_at is 'Earliest moment this submission may have left: start of the provider''s idempotency window.';
comment on column backline.operation.may_have_left is 'The current submission may have reached the provider (kinds without native idempotency store it before perform).';
comment on column backline.operation.absent_after is 'A lookup''s "not there" is believed only after this: lease end + request timeout + the larger of linger and lookup lag.';
comment on column backline.operation.repeatable is 'Repeating the same submission can still tell what happened; false once the provider''s idempotency layer answered it with an error.';
comment on column backline.operation.attempt is 'Counted attempts of this generation; throttled and blocked ones are not counted.';
comment on column backline.operation.lookups is 'Resolves that found nothing decisive.';
comment on column backline.operation.resolving is 'The current claim looks up, it does not submit.';
comment on column backline.operation.token is 'Fencing token of the current claim.';
comment on column backline.operation.nonce is 'Made by the claimer; compared together with the token.';
comment on column backline.operation.lease_id is 'Lease of the current claim.';
comment on column backline.operation.cancel_requested_at is 'Wish to cancel, honored after a definite non-application.';
comment on column backline.operation.expires_at is 'Not started after this.';
comment on column backline.operation.failure_class is 'Class of the last failure.';
comment on column backline.operation.failure_code is 'Stable code of the last failure.';
comment on column backline.operation.failure_detail is 'Text of the last failure, without payload.';
comment on column backline.operation.failed_at is 'When it last failed.';
comment on column backline.operation.first_failed_at is 'When it first failed in this generation.';
comment on column backline.operation.correlation_id is 'Business request.';
comment on column backline.operation.causation_id is 'Event or operation that caused it.';
comment on column backline.operation.traceparent is 'W3C trace context.';
comment on column backline.operation.encryption_key_ref is 'Reserved: per-subject key of an encrypted input.';
comment on column backline.operation.accepted_at is 'When it was accepted; ascends in order of acceptance, which fifo keys follow.';

create table backline.serial_hold (
    organization uuid not null,
    serial_key text not null,
    operation_id uuid not null,
    held_at timestamptz not null default clock_timestamp(),
    primary key (organization, serial_key)
);
comment on table backline.serial_hold is 'Which operation has a serial key: running, unknown and manual hold it; the head of a fifo key also between its attempts.';
comment on column backline.serial_hold.organization is 'Tenant.';
comment on column backline.serial_hold.serial_key is 'Key.';
comment on column backline.serial_hold.operation_id is 'Holder.';
comment on column backline.serial_hold.held_at is 'Since when.';

create table backline.ready_lane (
    kind text not null,
    organization uuid not null,
    priority smallint not null,
    next_due timestamptz not null,
    last_claimed timestamptz not null default '-infinity',
    mark_due timestamptz not null default '2000-01-01 00:00:00+00',
    mark_id uuid not null default '00000000-0000-0000-0000-000000000000',
    cap integer check (cap > 0),
    in_flight integer not null default 0,
    primary key (kind, organization, priority)
) with (fillfactor = 50);
comment on table backline.ready_lane is 'One row per (kind, organization, priority) with work: claims go round them, so one tenant''s million cannot delay another''s first. Every transaction that makes an operation ready locks and lowers its lane last.';
comment on column backline.ready_lane.kind is 'Operation kind.';
comment on column backline.ready_lane.organization is 'Tenant.';
comment on column backline.ready_lane.priority is 'Priority.';
comment on column backline.ready_lane.next_due is 'Nothing in the lane is due before this; infinity when empty.';
comment on column backline.ready_lane.last_claimed is 'For going round.';
comment on column backline.ready_lane.mark_due is 'Low mark: claims scan from (mark_due, mark_id), past dead index entries. Exact, because whoever makes a row ready lowers it under the lane''s lock; a periodic unmarked claim checks.';
comment on column backline.ready_lane.mark_id is 'Second part of the mark.';
comment on column backline.ready_lane.cap is 'Operations in flight at most; null = no cap.';
comment on column backline.ready_lane.in_flight is 'Kept only where cap is set; recounted by the sweep.';

create table backline.operation_history (
    id uuid not null,
    generation bigint not null,
    kind text not null,
    organization uuid not null,
    project uuid,
    operation_key text not null,
    occurrence bigint not null,
    mode backline.operation_mode not null,
    outcome backline.outcome_kind not null,
    code text,
    detail text,
    output jsonb,
    input jsonb,
    submission integer not null,
    attempt integer not null,
    token bigint,
    nonce bigint,
    serial_key text,
    correlation_id uuid not null,
    causation_id uuid,
    traceparent text,
    successor uuid,
    accepted_at timestamptz not null,
    first_failed_at timestamptz,
    finished_at timestamptz not null default clock_timestamp(),
    retention_class text not null default 'standard'
) partition by list (retention_class);
comment on table backline.operation_history is 'Outcomes, one per (operation, generation), append-only, by retention class and month; retention drops whole partitions and never touches the financial class.';
comment on column backline.operation_history.id is 'Operation id.';
comment on column backline.operation_history.generation is 'Generation this outcome ends.';
comment on column backline.operation_history.kind is 'Operation kind.';
comment on column backline.operation_history.organization is 'Tenant.';
comment on column backline.operation_history.project is 'Project.';
comment on column backline.operation_history.operation_key is 'Producer''s name for the effect.';
comment on column backline.operation_history.occurrence is 'Occurrence of a coalesced key.';
comment on column backline.operation_history.mode is 'What the inputs meant.';
comment on column backline.operation_history.outcome is 'How it ended.';
comment on column backline.operation_history.code is 'Stable code of a rejection, or the rule that made it obsolete.';
comment on column backline.operation_history.detail is 'Words for people; for obsolete the version seen.';
comment on column backline.operation_history.output is 'What perform or resolve returned, for example the provider''s object id.';
comment on column backline.operation_history.input is 'Frozen input, where the kind keeps it.';
comment on column backline.operation_history.submission is 'Submission that decided.';
comment on column backline.operation_history.attempt is 'Counted attempts.';
comment on column backline.operation_history.token is 'Token of the claim that finished it.';
comment on column backline.operation_history.nonce is 'Nonce of that claim: a finish whose COMMIT reply was lost finds itself by it.';
comment on column backline.operation_history.serial_key is 'Serial key it held.';
comment on column backline.operation_history.correlation_id is 'Business request.';
comment on column backline.operation_history.causation_id is 'Event or operation that caused it.';
comment on column backline.operation_history.traceparent is 'W3C trace context.';
comment on column backline.operation_history.successor is 'Operation that superseded it.';
comment on column backline.operation_history.accepted_at is 'When it was accepted.';
comment on column backline.operation_history.first_failed_at is 'When it first failed.';
comment on column backline.operation_history.finished_at is 'When it ended.';
comment on column backline.operation_history.retention_class is 'Retention family.';
create table backline.operation_history_standard partition of backline.operation_history for values in ('standard') partition by range (finished_at);
create table backline.operation_history_financial partition of backline.operation_history for values in ('financial') partition by range (finished_at);
comment on table backline.operation_history_standard is 'Outcomes that retention may drop.';
comment on table backline.operation_history_financial is 'Outcomes of kinds that move money: kept for the domain''s lifetime (obligation D13).';
create index on backline.operation_history (id, generation);

create table backline.attempt_evidence (
    operation_id uuid not null,
    at timestamptz not null default clock_timestamp(),
    generation bigint not null,
    submission integer not null,
    attempt integer not null,
    token bigint,
    fenced boolean not null,
    class text not null,
    code text not null,
    detail text,
    evidence jsonb
) partition by range (at);
create index on backline.attempt_evidence (operation_id, at);
comment on table backline.attempt_evidence is 'Append-only: every attempt that did not complete its operation, and replies that fenced holders brought back too late. Resolve reads it first.';
comment on column backline.attempt_evidence.operation_id is 'Operation.';
comment on column backline.attempt_evidence.at is 'When it was written.';
comment on column backline.attempt_evidence.generation is 'Generation worked on.';
comment on column backline.attempt_evidence.submission is 'Submission presented.';
comment on column backline.attempt_evidence.attempt is 'Attempt number.';
comment on column backline.attempt_evidence.token is 'Token of the claim.';
comment on column backline.attempt_evidence.fenced is 'The holder was stale: its result was refused and kept here.';
comment on column backline.attempt_evidence.class is 'Failure class; succeeded for a fenced success.';
comment on column backline.attempt_evidence.code is 'Stable code.';
comment on column backline.attempt_evidence.detail is 'Words without payload.';
comment on column backline.attempt_evidence.evidence is 'Provider''s facts: status, request id, output.';

create table backline.audit (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    actor text not null,
    action text not null,
    operation_id uuid,
    reason text not null,
    detail jsonb
);
comment on table backline.audit is 'What people did to operations, and why.';
comment on column backline.audit.id is 'Row id.';
comment on column backline.audit.at is 'When.';
comment on column backline.audit.actor is 'Who.';
comment on column backline.audit.action is 'retry, cancel, resolve, discard, supersede, pause, resume.';
comment on column backline.audit.operation_id is 'On what.';
comment on column backline.audit.reason is 'Why.';
comment on column backline.audit.detail is 'Evidence, old and new state.';


create function backline.uuid7_floor(at timestamptz) returns uuid language sql immutable parallel safe as $$
    select (encode(substring(int8send((extract(epoch from at) * 1000)::bigint) from 3), 'hex') || repeat('0', 20))::uuid
$$;
comment on function backline.uuid7_floor(timestamptz) is 'Smallest UUID whose time bits are at or after a moment: bound of a partition by event id.';

create table backline.seal_floor (
    only_one boolean primary key default true check (only_one),
    floor timestamptz not null
);
comment on table backline.seal_floor is 'Seals of events older than this were dropped: a delivery from below it is parked, never executed.';
comment on column backline.seal_floor.only_one is 'Single row.';
comment on column backline.seal_floor.floor is 'By the time bits of event ids.';
insert into backline.seal_floor (floor) values ('epoch');

create function backline.drop_old(published interval, history interval, seals interval) returns text[]
language plpgsql volatile security definer set search_path = pg_catalog as $$
declare
    part record;
    dropped text[] := '{}';
    -- Never above the oldest open work: its deliveries may still repeat.
    v_floor timestamptz := least(clock_timestamp() - seals, (select min(accepted_at) from backline.operation),
        (select min(occurred_at) from backline.outbox));
    v_month timestamptz;
begin
    if published < interval '1 day' or history < interval '1 day' or seals < interval '7 days' then
        raise exception 'drop_old: published and history must be at least 1 day, seals at least 7 days (the broker''s default retention)' using errcode = '22023';
    end if;
    perform pg_advisory_xact_lock(hashtext('backline.partitions'));
    for part in
        select c.relname, p.relname as parent, to_timestamp(right(c.relname, case when p.relname = 'outbox_published' then 8 else 6 end),
            case when p.relname = 'outbox_published' then 'YYYYMMDD' else 'YYYYMM' end) as starts
          from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = 'backline' and p.relname in ('outbox_published', 'operation_history_standard', 'attempt_evidence', 'seal')
           and c.relname ~ '_[0-9]+$' order by 3
    loop
        v_month := part.starts + interval '1 month';
        if (part.parent = 'outbox_published' and part.starts + interval '1 day' < clock_timestamp() - published)
            or (part.parent in ('operation_history_standard', 'attempt_evidence') and v_month < clock_timestamp() - history)
            or (part.parent = 'seal' and v_month < v_floor) then
            if part.parent = 'seal' then
                update backline.seal_floor set floor = greatest(floor, v_month);
            end if;
            execute format('drop table backline.%I', part.relname);
            dropped := dropped || part.relname::text;
        end if;
    end loop;
    return dropped;
end $$;
comment on function backline.drop_old(interval, interval, interval) is 'Retention: drops whole partitions of confirmed events, standard history, evidence and seals that are older; never financial history, nor seals that open work may need. Returns what it dropped.';

create function backline.ensure_partitions() returns integer
language plpgsql volatile security definer set search_path = pg_catalog as $$
declare
    month date := date_trunc('month', clock_timestamp() at time zone 'UTC')::date;
    made integer := backline.ensure_outbox_partitions();
    last date := (month + interval '2 months')::date;
    part text;
begin
    perform pg_advisory_xact_lock(hashtext('backline.partitions'));
    while month <= last loop
        foreach part in array array['operation_history_standard', 'operation_history_financial', 'attempt_evidence'] loop
            if to_regclass(format('backline.%s_%s', part, to_char(month, 'YYYYMM'))) is null then
                execute format('create table backline.%1$s_%2$s partition of backline.%1$s for values from (%3$L) to (%4$L)',
                    part, to_char(month, 'YYYYMM'), month::timestamp at time zone 'UTC', (month + interval '1 month') at time zone 'UTC');
                made := made + 1;
            end if;
        end loop;
        if to_regclass(format('backline.seal_%s', to_char(month, 'YYYYMM'))) is null then
            execute format('create table backline.seal_%s partition of backline.seal for values from (%L) to (%L)', to_char(month, 'YYYYMM'),
                backline.uuid7_floor(month::timestamp at time zone 'UTC'), backline.uuid7_floor((month + interval '1 month') at time zone 'UTC'));
            made := made + 1;
        end if;
        month := (month + interval '1 month')::date;
    end loop;
    return made;
end $$;
comment on function backline.ensure_partitions() is 'Creates coming partitions of history, evidence and published events; run by the sweeps. Returns how many it made.';
select backline.ensure_partitions();
create table backline.operation_history_standard_default partition of backline.operation_history_standard default;
create table backline.operation_history_financial_default partition of backline.operation_history_financial default;
create table backline.attempt_evidence_default partition of backline.attempt_evidence default;

create function backline.wake_blocked(account text) returns bigint language sql volatile as $$
    -- Lanes are lowered last and under their locks, as in every statement that makes an operation due.
    with o as (update backline.operation o set due_at = clock_timestamp() from backline.kind k
         where k.kind = o.kind and k.provider_account = account and o.state = 'ready' and o.failure_class = 'blocked' and o.due_at > clock_timestamp()
        returning o.kind, o.organization, o.priority, o.due_at),
    l as (insert into backline.ready_lane as l (kind, organization, priority, next_due)
        select kind, organization, priority, min(due_at) from o group by 1, 2, 3 order by 1, 2, 3
        on conflict (kind, organization, priority) do update set next_due = least(l.next_due, excluded.next_due),
            mark_due = least(l.mark_due, excluded.next_due),
            mark_id = case when excluded.next_due <= l.mark_due then '00000000-0000-0000-0000-000000000000' else l.mark_id end)
    select count(*) from o
$$;
comment on function backline.wake_blocked(text) is 'Makes due what waits because the provider had refused the account; for whoever lifts the pause.';
