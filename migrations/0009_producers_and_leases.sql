-- Producer API again: one rule for a payload and for a scope on every way in, and a cheaper id of many events at a time.

create or replace function backline.emit_rare_event(
    event_type text,
    organization uuid,
    project uuid,
    aggregate_type text,
    aggregate_id text,
    payload jsonb,
    schema_version integer,
    aggregate_version bigint,
    correlation_id uuid,
    causation_id uuid,
    traceparent text,
    tracestate text,
    event_id uuid,
    topic text
) returns uuid language plpgsql volatile as $$
declare
    v_id uuid := event_id;
    v_scope backline.event_scope;
begin
    if event_type is null or length(event_type) not between 3 and 128 or event_type !~ '^[A-Z][A-Za-z0-9]+$' or right(event_type, 9) = 'Requested'
        or (right(event_type, 2) <> 'ed' and event_type !~ '(Sent|Paid|Lost|Left|Built|Made|Won|Begun|Met|Sold|Bought|Taken|Given|Withdrawn|Written|Chosen|Set|Put|Read|Held|Kept|Known|Shown|Run|Split|Cut|Spent|Done|Gone|Seen|Driven|Frozen|Broken|Drawn|Grown|Thrown|Overdrawn|Undone|Reset)$') then
        if not exists (select from backline.event_scope s where s.event_type = emit_rare_event.event_type) then
            raise exception 'emit_event: event_type "%" is not a past-tense fact in CamelCase', left(event_type, 140) using errcode = '22023';
        end if;
    end if;
    if organization is null and project is not null then
        raise exception 'emit_event: organization is required where a project is given, for %', event_type using errcode = '22023';
    end if;
    if organization is null or project is null then
        select * into v_scope from backline.event_scope s where s.event_type = emit_rare_event.event_type;
        if organization is null and v_scope.scope is distinct from 'platform' then
            raise exception 'emit_event: organization is required for %', event_type using errcode = '22023';
        end if;
        if project is null and v_scope.scope is null then
            raise exception 'emit_event: project is required for % (its scope is project; declare another in backline.event_scope)', event_type using errcode = '22023';
        end if;
    end if;
    if right(event_type, 9) = 'Requested' and exists (select from backline.event_scope s where s.event_type = emit_rare_event.event_type and s.carries_secrets) then
        raise exception 'emit_event: event_type % carries addresses and bearer links and is refused until payload encryption exists', event_type using errcode = '0A000';
    end if;
    if aggregate_type is null or length(aggregate_type) > 128 or aggregate_type !~ '^[A-Za-z][A-Za-z0-9_.-]*$' then
        raise exception 'emit_event: aggregate_type "%" must be 1 to 128 letters, digits, _ . -', left(aggregate_type, 140) using errcode = '22023';
    end if;
    if aggregate_id is null or aggregate_id = '' or octet_length(aggregate_id) > 512 then
        raise exception 'emit_event: aggregate_id must have 1 to 512 bytes' using errcode = '22023';
    end if;
    if payload is null or jsonb_typeof(payload) = 'null' then
        raise exception 'emit_event: payload is required' using errcode = '22023';
    end if;
    if schema_version is null or schema_version < 1 then
        raise exception 'emit_event: schema_version must be at least 1' using errcode = '22023';
    end if;
    if octet_length(payload::text) > 9000000 then
        raise exception 'emit_event: payload has % bytes, the broker takes 9000000 with its attributes', octet_length(payload::text) using errcode = '54000';
    end if;
    if traceparent is not null and (length(traceparent) <> 55 or traceparent !~ '^[0-9a-f][0-9a-f]-[0-9a-f]+-[0-9a-f]+-[0-9a-f][0-9a-f]$'
        or substr(traceparent, 36, 1) <> '-') then
        raise exception 'emit_event: traceparent is not of the W3C form' using errcode = '22023';
    end if;
    if octet_length(tracestate) > 512 then
        raise exception 'emit_event: tracestate has more than 512 bytes' using errcode = '22023';
    end if;
    if topic is null or topic <> 'domain-events' and (topic !~ '^[A-Za-z][A-Za-z0-9_.~+%-]{2,254}$' or topic like 'goog%') then
        raise exception 'emit_event: topic "%" is not a topic id of the broker', left(topic, 260) using errcode = '22023';
    end if;
    if v_id is null then
        v_id := backline.uuid7();
    elsif backline.uuid7_time(v_id) is null or abs(extract(epoch from backline.uuid7_time(v_id) - clock_timestamp())) > 86400 then
        raise exception 'emit_event: event_id must be a UUIDv7 minted within a day of the database''s clock' using errcode = '22023';
    end if;
    insert into backline.outbox (lane, id, event_type, schema_version, organization, project, topic, aggregate_type, aggregate_id,
        aggregate_version, correlation_id, causation_id, traceparent, tracestate, occurred_at, payload)
    values (backline.lane_of(organization, aggregate_type, aggregate_id), v_id, event_type, schema_version, organization, project, topic,
        aggregate_type, aggregate_id, aggregate_version, coalesce(correlation_id, v_id), causation_id, traceparent, tracestate, now(), payload);
    perform backline.ring('backline_outbox');
    return v_id;
end $$;

create or replace function backline.emit_event(
    event_type text,
    organization uuid,
    project uuid,
    aggregate_type text,
    aggregate_id text,
    payload jsonb,
    schema_version integer default 1,
    aggregate_version bigint default null,
    correlation_id uuid default null,
    causation_id uuid default null,
    traceparent text default null,
    tracestate text default null,
    event_id uuid default null,
    topic text default 'domain-events'
) returns uuid language plpgsql volatile as $$
declare
    -- uuid7() written out. Nothing of the row is read back: producers may insert into the outbox and not look at it.
    v_id uuid := (overlay(lpad(to_hex((extract(epoch from clock_timestamp()) * 1000000)::bigint * 512 / 125), 15, '0') placing '7' from 13 for 0)
        || substr(gen_random_uuid()::text, 20))::uuid;
    v_asleep boolean;
begin
    -- This runs inside every business transaction, where each expression of the function is prepared anew: one condition and one statement
    -- take a third of the time of one check each. Bounded repetitions in a pattern would cost 10 us, a length check nothing.
    if (event_type ~ '^[A-Z][A-Za-z0-9]+ed$' and length(event_type) between 3 and 128 and right(event_type, 9) <> 'Requested'
        and organization is not null and project is not null and aggregate_type ~ '^[A-Za-z][A-Za-z0-9_.-]*$' and length(aggregate_type) <= 128
        and aggregate_id <> '' and octet_length(aggregate_id) <= 512 and jsonb_typeof(payload) <> 'null'
        and (pg_column_size(payload) < 5000 or octet_length(payload::text) <= 9000000) and schema_version >= 1
        and (traceparent is null or length(traceparent) = 55 and traceparent ~ '^[0-9a-f][0-9a-f]-[0-9a-f]+-[0-9a-f]+-[0-9a-f][0-9a-f]$'
            and substr(traceparent, 36, 1) = '-')
        and (tracestate is null or octet_length(tracestate) <= 512) and event_id is null and topic = 'domain-events') is not true then
        return backline.emit_rare_event(event_type, organization, project, aggregate_type, aggregate_id, payload, schema_version,
            aggregate_version, correlation_id, causation_id, traceparent, tracestate, event_id, topic);
    end if;
    insert into backline.outbox (lane, id, event_type, schema_version, organization, project, topic, aggregate_type, aggregate_id,
        aggregate_version, correlation_id, causation_id, traceparent, tracestate, occurred_at, payload)
    values (backline.lane_of(organization, aggregate_type, aggregate_id), v_id, event_type, schema_version, organization, project, topic,
        aggregate_type, aggregate_id, aggregate_version, coalesce(correlation_id, v_id), causation_id, traceparent, tracestate, now(), payload)
    returning exists (select from backline.sleeper s where s.channel = 'backline_outbox' and s.asleep_until > clock_timestamp())
      into v_asleep;
    if v_asleep then
        perform pg_notify('backline_outbox', '');
    end if;
    return v_id;
end $$;

create or replace function backline.emit_events(
    event_type text[],
    organization uuid[],
    project uuid[],
    aggregate_type text[],
    aggregate_id text[],
    payload jsonb[],
    schema_version integer[] default null,
    aggregate_version bigint[] default null,
    correlation_id uuid[] default null,
    causation_id uuid[] default null,
    traceparent text[] default null,
    tracestate text[] default null,
    event_id uuid[] default null,
    topic text[] default null
) returns uuid[] language plpgsql volatile as $$
declare
    v_count integer := coalesce(cardinality(event_type), 0);
    v_ids uuid[];
    -- The ids of a call share their time and ascend from a random number of 42 bits; a random tail each would be a tenth of the call.
    v_head text := left(backline.uuid7()::text, 19) || substr(gen_random_uuid()::text, 20, 12);
begin
    -- What only the checks below allow is written at once; a single other row sends the whole call through emit_event, which names the fault.
    -- Each looks at one column, since making rows of all of them costs as much as a third of the insert.
    if (v_count < 1048576 and coalesce(cardinality(array_remove(event_id, null)), 0) = 0
        and cardinality(organization) = v_count and array_position(organization, null) is null
        and cardinality(project) = v_count and array_position(project, null) is null
        and cardinality(aggregate_type) = v_count and cardinality(aggregate_id) = v_count and cardinality(payload) = v_count
        and v_count >= greatest(cardinality(schema_version), cardinality(aggregate_version), cardinality(correlation_id), cardinality(causation_id),
            cardinality(traceparent), cardinality(tracestate), cardinality(topic), 0)
        and coalesce((select bool_and((length(x) between 3 and 128 and x ~ '^[A-Z][A-Za-z0-9]+ed$' and right(x, 9) <> 'Requested') is true)
              from (select distinct unnest(event_type) as x) d), true)
        and coalesce((select bool_and((length(x) <= 128 and x ~ '^[A-Za-z][A-Za-z0-9_.-]*$') is true)
              from (select distinct unnest(aggregate_type) as x) d), true)
        and coalesce((select bool_and((x <> '' and octet_length(x) <= 512) is true) from (select unnest(aggregate_id) as x) d), true)
        and coalesce((select bool_and((jsonb_typeof(x) <> 'null' and (pg_column_size(x) < 5000 or octet_length(x::text) <= 9000000)) is true)
              from (select unnest(payload) as x) d), true)
        and coalesce((select bool_and(x >= 1) from (select unnest(schema_version) as x) d), true)
        and coalesce((select bool_and(x = 'domain-events') from (select distinct unnest(topic) as x) d), true)
        and coalesce((select bool_and(length(x) = 55 and x ~ '^[0-9a-f][0-9a-f]-[0-9a-f]+-[0-9a-f]+-[0-9a-f][0-9a-f]$' and substr(x, 36, 1) = '-')
              from (select distinct unnest(traceparent) as x) d), true)
        and coalesce((select bool_and(octet_length(x) <= 512) from (select unnest(tracestate) as x) d), true)) is not true then
        -- No rows, of arrays that an aggregate over nothing left null, are no ids.
        return (select coalesce(array_agg(backline.emit_event(u.t, u.o, u.p, u.a, u.i, u.j, coalesce(u.v, 1), u.av, u.cor, u.cau, u.r, u.s, u.e,
                    coalesce(u.top, 'domain-events')) order by u.ord), '{}')
              from unnest(event_type, organization, project, aggregate_type, aggregate_id, payload, schema_version, aggregate_version,
                correlation_id, causation_id, traceparent, tracestate, event_id, topic) with ordinality
                as u(t, o, p, a, i, j, v, av, cor, cau, r, s, e, top, ord));
    end if;
    select coalesce(array_agg((v_head || lpad(to_hex(n), 5, '0'))::uuid), '{}') into v_ids from generate_series(0, v_count - 1) as n;
    insert into backline.outbox (lane, id, event_type, schema_version, organization, project, topic, aggregate_type, aggregate_id,
        aggregate_version, correlation_id, causation_id, traceparent, tracestate, occurred_at, payload)
    select backline.lane_of(u.o, u.a, u.i), u.id, u.t, coalesce(u.v, 1), u.o, u.p, 'domain-events', u.a, u.i, u.av, coalesce(u.cor, u.id), u.cau,
        u.r, u.s, now(), u.j
      from unnest(v_ids, event_type, organization, project, aggregate_type, aggregate_id, payload, schema_version, aggregate_version,
        correlation_id, causation_id, traceparent, tracestate) as u(id, t, o, p, a, i, j, v, av, cor, cau, r, s);
    perform backline.ring('backline_outbox') where cardinality(v_ids) > 0;
    return v_ids;
end $$;

comment on table backline.lease is 'One row per (process, claim batch): one update renews a batch. Finishing and reclaiming exclude each other by the operation''s row; reclaiming takes a lease as a whole.';
