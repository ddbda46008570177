-- Backline, outbox: envelopes that wait for the broker's confirmation, and those that have it.

create table backline.outbox (
    lane smallint not null check (lane between 0 and 63),
    seq bigint generated always as identity,
    id uuid not null,
    event_type text not null,
    schema_version integer not null,
    organization uuid,
    project uuid,
    topic text not null,
    aggregate_type text not null,
    aggregate_id text not null,
    aggregate_version bigint,
    correlation_id uuid not null,
    causation_id uuid,
    traceparent text,
    tracestate text,
    occurred_at timestamptz not null check (occurred_at between '2000-01-01 00:00:00+00' and '9999-01-01 00:00:00+00'),
    payload jsonb not null,
    encryption_key_ref text,
    offers integer not null default 0,
    failures integer not null default 0,
    parked_at timestamptz,
    parked_reason text,
    primary key (lane, seq)
);
-- Empty most of the time: vacuum must keep up with a queue, not with a table (facts 9.2).
alter table backline.outbox set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
comment on table backline.outbox is 'Events committed with business state that the broker has not confirmed yet. Rows leave when it has.';
comment on column backline.outbox.lane is 'hash(organization, aggregate) mod 64: one relay at a time publishes a lane, in order.';
comment on column backline.outbox.seq is 'Insertion order inside a lane. Taken before commit, so never a watermark.';
comment on column backline.outbox.id is 'Event id, UUIDv7; the same at every attempt to publish.';
comment on column backline.outbox.event_type is 'Past-tense fact, for example PaymentAuthorized.';
comment on column backline.outbox.schema_version is 'Version of the payload''s shape, from 1.';
comment on column backline.outbox.organization is 'Tenant; null only for platform events.';
comment on column backline.outbox.project is 'Project; null only where the type declares a wider scope.';
comment on column backline.outbox.topic is 'Broker topic id.';
comment on column backline.outbox.aggregate_type is 'What the fact is about.';
comment on column backline.outbox.aggregate_id is 'Which one.';
comment on column backline.outbox.aggregate_version is 'Version after the change; orders events of one aggregate.';
comment on column backline.outbox.correlation_id is 'The business request all of this belongs to.';
comment on column backline.outbox.causation_id is 'Event or operation that caused this one.';
comment on column backline.outbox.traceparent is 'W3C trace context of the producer''s transaction.';
comment on column backline.outbox.tracestate is 'W3C tracestate.';
comment on column backline.outbox.occurred_at is 'When the fact happened (transaction time).';
comment on column backline.outbox.payload is 'Facts; its jsonb text is the published bytes.';
comment on column backline.outbox.encryption_key_ref is 'Reserved: per-subject key of an encrypted payload.';
comment on column backline.outbox.offers is 'How often the re-offer sweep has put a published event back here.';
comment on column backline.outbox.failures is 'Permanent refusals by the broker; outages are not counted.';
comment on column backline.outbox.parked_at is 'Set when the entry is set aside: an explicit gap in its lane.';
comment on column backline.outbox.parked_reason is 'Why, in words an operator can act on.';

create table backline.outbox_published (
    like backline.outbox including comments,
    message_id text not null,
    published_at timestamptz not null default clock_timestamp()
) partition by range (published_at);
comment on table backline.outbox_published is 'Events the broker confirmed, by day; retention drops whole partitions.';
comment on column backline.outbox_published.message_id is 'Broker''s id of the confirmed publication; never an identity of ours.';
comment on column backline.outbox_published.published_at is 'When the confirmation was recorded.';
create index on backline.outbox_published (id);
create index on backline.outbox_published (event_type, published_at);

create sequence backline.lane_token;
comment on sequence backline.lane_token is 'Fencing tokens of outbox lanes.';

create table backline.outbox_lane (
    lane smallint primary key,
    owner text,
    token bigint not null default 0,
    nonce bigint not null default 0,
    until timestamptz not null default '-infinity',
    mark_seq bigint not null default 0,
    unmarked_at timestamptz not null default '-infinity'
) with (fillfactor = 50);
comment on table backline.outbox_lane is 'Fenced leases of the outbox''s lanes.';
comment on column backline.outbox_lane.lane is 'Lane number.';
comment on column backline.outbox_lane.owner is 'Relay that holds it, for people.';
comment on column backline.outbox_lane.token is 'Rises with every taking.';
comment on column backline.outbox_lane.nonce is 'Made by the taker: a rewound sequence cannot revive a stopped relay.';
comment on column backline.outbox_lane.until is 'Lease end.';
comment on column backline.outbox_lane.mark_seq is 'Scan starts behind this; trails the producers'' declared commit lag.';
comment on column backline.outbox_lane.unmarked_at is 'Last scan that ignored the mark: the truth.';
insert into backline.outbox_lane (lane) select generate_series(0, 63);

create table backline.seal (
    event_id uuid not null,
    consumer text not null,
    sealed_at timestamptz not null default clock_timestamp(),
    primary key (event_id, consumer)
) partition by range (event_id);
comment on table backline.seal is 'Completion of (event, consumer): its intents are committed. Partitioned by the time bits of the event id.';
comment on column backline.seal.event_id is 'Event id.';
comment on column backline.seal.consumer is 'Consumer name.';
comment on column backline.seal.sealed_at is 'When.';
create table backline.seal_default partition of backline.seal default;

create table backline.parked_delivery (
    id bigint generated always as identity primary key,
    consumer text not null,
    event_id uuid,
    state text not null check (state in ('waiting-for-capability', 'beyond-window', 'poison', 'accepted')),
    reason text not null,
    attributes jsonb not null,
    data bytea not null,
    first_at timestamptz not null default clock_timestamp(),
    last_at timestamptz not null default clock_timestamp(),
    arrivals integer not null default 1,
    fingerprint uuid not null,
    unique (consumer, fingerprint)
);
comment on table backline.parked_delivery is 'Deliveries this build could not accept, stored raw so that the broker can be acknowledged and nothing is lost.';
comment on column backline.parked_delivery.id is 'Row id.';
comment on column backline.parked_delivery.consumer is 'Consumer that met it.';
comment on column backline.parked_delivery.event_id is 'Event id where it could be read.';
comment on column backline.parked_delivery.state is 'waiting-for-capability: a newer build will accept it. beyond-window: older than the dedupe window, never executed. poison: malformed bytes. accepted: taken later.';
comment on column backline.parked_delivery.reason is 'Field or rule at fault.';
comment on column backline.parked_delivery.attributes is 'Broker attributes as received.';
comment on column backline.parked_delivery.data is 'Bytes as received.';
comment on column backline.parked_delivery.first_at is 'First arrival.';
comment on column backline.parked_delivery.last_at is 'Latest arrival.';
comment on column backline.parked_delivery.arrivals is 'How often it came.';
comment on column backline.parked_delivery.fingerprint is 'Hash of event id or bytes: one row per identity.';

create function backline.ensure_outbox_partitions(ahead interval default '14 days') returns integer
language plpgsql volatile security definer set search_path = pg_catalog as $$
declare
    day date := (clock_timestamp() at time zone 'UTC')::date - 1;
    made integer := 0;
begin
    -- Concurrent callers would both try to create the same day.
    perform pg_advisory_xact_lock(hashtext('backline.partitions'));
    while day <= (clock_timestamp() at time zone 'UTC')::date + ahead loop
        if to_regclass(format('backline.outbox_published_%s', to_char(day, 'YYYYMMDD'))) is null then
            execute format('create table backline.outbox_published_%s partition of backline.outbox_published for values from (%L) to (%L)',
                to_char(day, 'YYYYMMDD'), day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC');
            made := made + 1;
        end if;
        day := day + 1;
    end loop;
    return made;
end $$;
comment on function backline.ensure_outbox_partitions(interval) is 'Creates the daily partitions of published events; returns how many it made.';
select backline.ensure_outbox_partitions();
create table backline.outbox_published_default partition of backline.outbox_published default;
