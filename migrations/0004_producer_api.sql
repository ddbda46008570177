-- Backline, producer API: functions an application calls inside its own transaction, in any language.
-- They validate before anything is written and name the field at fault (SQLSTATE 22023, or 54000 for sizes).

create function backline.uuid7() returns uuid language sql volatile parallel safe as $$
    -- 48 bits of milliseconds, version 7, 12 bits of the millisecond's fraction (RFC 9562 method 3), variant and 62 random bits. Microseconds
    -- times 4.096 are milliseconds and fraction in one number. One expression without a query, so that callers have it inlined.
    select (overlay(lpad(to_hex((extract(epoch from clock_timestamp()) * 1000000)::bigint * 512 / 125), 15, '0') placing '7' from 13 for 0)
        || substr(gen_random_uuid()::text, 20))::uuid
$$;
comment on function backline.uuid7() is 'UUIDv7 by the database''s clock, with microseconds in its second field so that ids of one session ascend.';

create function backline.uuid7_time(id uuid) returns timestamptz language sql immutable parallel safe as $$
    select case when get_byte(uuid_send(id), 6) >> 4 = 7 then
        to_timestamp(('x' || lpad(encode(substring(uuid_send(id) from 1 for 6), 'hex'), 16, '0'))::bit(64)::bigint / 1000.0) end
$$;
comment on function backline.uuid7_time(uuid) is 'Time bits of a UUIDv7, null for other versions.';

create function backline.stored_key(key text) returns text language sql immutable parallel safe as $$
    -- A B-tree row over 2704 bytes fails with 54000 and would roll the business write back (field case 45).
    select case when octet_length(key) <= 512 then key else 'sha256:' || encode(sha256(convert_to(key, 'UTF8')), 'hex') end
$$;
comment on function backline.stored_key(text) is 'The key itself, or its hash when longer than 512 bytes.';

create function backline.operation_id(organization uuid, kind text, operation_key text, occurrence bigint default 0) returns uuid
language sql immutable parallel safe as $$
    -- The key comes last, so no separator inside it can make two names alike.
    select encode(set_byte(set_byte(h, 6, get_byte(h, 6) & 15 | 128), 8, get_byte(h, 8) & 63 | 128), 'hex')::uuid
      from (select substring(sha256(convert_to(organization::text || chr(31) || kind || chr(31) || occurrence || chr(31) || operation_key, 'UTF8')) from 1 for 16) as h) d
$$;
comment on function backline.operation_id(uuid, text, text, bigint) is 'Identity of an operation: UUIDv8 from sha256 of its name. The same question always gets the same id.';

create function backline.lane_of(organization uuid, aggregate_type text, aggregate_id text) returns smallint
language sql immutable parallel safe as $$
    select (hashtextextended(coalesce(organization::text, '') || chr(31) || aggregate_type || chr(31) || aggregate_id, 0) & 63)::smallint
$$;
comment on function backline.lane_of(uuid, text, text) is 'Outbox lane of an aggregate, 0 to 63.';

create function backline.ring(bell text) returns void language plpgsql volatile as $$
begin
    if exists (select from backline.sleeper s where s.channel = bell and s.asleep_until > clock_timestamp()) then
        perform pg_notify(bell, '');
    end if;
end $$;
comment on function backline.ring(text) is 'Notifies a channel only while somebody has declared to sleep on it; the notification carries nothing.';

create function backline.emit_rare_event(
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
    if payload is null then
        raise exception 'emit_event: payload is required' using errcode = '22023';
    end if;
    if schema_version is null or schema_version < 1 then
        raise exception 'emit_event: schema_version must be at least 1' using errcode = '22023';
    end if;
    -- The binary form is within a few percent of the text; the text is measured only when it may matter.
    if pg_column_size(payload) > 4000000 and octet_length(payload::text) > 9000000 then
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
comment on function backline.emit_rare_event is 'What emit_event does with an event that its one condition does not let pass: names the fault, or appends it. Not for callers.';

create function backline.emit_event(
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
        and aggregate_id <> '' and octet_length(aggregate_id) <= 512 and pg_column_size(payload) < 4000000 and schema_version >= 1
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
comment on function backline.emit_event is 'Appends one event to the outbox in the caller''s transaction and returns its id.';

create function backline.emit_events(
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
    v_ids uuid[];
    -- The ids of a call share their time; the order of a lane is the order of insertion.
    v_head text := left(backline.uuid7()::text, 19);
    v_plain boolean;
begin
    -- What only the checks below allow is written at once; a single other row sends the whole call through emit_event, which names the fault.
    v_plain := coalesce(cardinality(array_remove(event_id, null)), 0) = 0
        and coalesce((select bool_and(length(x) between 3 and 128 and x ~ '^[A-Z][A-Za-z0-9]+ed$' and right(x, 9) <> 'Requested')
              from (select distinct unnest(event_type) as x) d), true)
        and coalesce((select bool_and(length(x) <= 128 and x ~ '^[A-Za-z][A-Za-z0-9_.-]*$') from (select distinct unnest(aggregate_type) as x) d), true)
        and coalesce((select bool_and(x = 'domain-events') from (select distinct unnest(topic) as x) d), true)
        and coalesce((select bool_and((t is not null and o is not null and p is not null and a is not null and i <> '' and octet_length(i) <= 512
                    and j is not null and pg_column_size(j) < 4000000 and coalesce(v, 1) >= 1 and coalesce(octet_length(s) <= 512, true)
                    and (r is null or length(r) = 55 and r ~ '^[0-9a-f][0-9a-f]-[0-9a-f]+-[0-9a-f]+-[0-9a-f][0-9a-f]$' and substr(r, 36, 1) = '-')) is true)
              from unnest(event_type, organization, project, aggregate_type, aggregate_id, payload, schema_version, traceparent, tracestate)
                as u(t, o, p, a, i, j, v, r, s)), true);
    if not v_plain then
        return (select array_agg(backline.emit_event(u.t, u.o, u.p, u.a, u.i, u.j, coalesce(u.v, 1), u.av, u.cor, u.cau, u.r, u.s, u.e,
                    coalesce(u.top, 'domain-events')) order by u.ord)
              from unnest(event_type, organization, project, aggregate_type, aggregate_id, payload, schema_version, aggregate_version,
                correlation_id, causation_id, traceparent, tracestate, event_id, topic) with ordinality
                as u(t, o, p, a, i, j, v, av, cor, cau, r, s, e, top, ord));
    end if;
    select coalesce(array_agg((v_head || substr(gen_random_uuid()::text, 20))::uuid), '{}') into v_ids from generate_subscripts(event_type, 1);
    insert into backline.outbox (lane, id, event_type, schema_version, organization, project, topic, aggregate_type, aggregate_id,
        aggregate_version, correlation_id, causation_id, traceparent, tracestate, occurred_at, payload)
    select backline.lane_of(u.o, u.a, u.i), u.id, u.t, coalesce(u.v, 1), u.o, u.p, 'domain-events', u.a, u.i, u.av, coalesce(u.cor, u.id), u.cau,
        u.r, u.s, now(), u.j
      from unnest(v_ids, event_type, organization, project, aggregate_type, aggregate_id, payload, schema_version, aggregate_version,
        correlation_id, causation_id, traceparent, tracestate) as u(id, t, o, p, a, i, j, v, av, cor, cau, r, s);
    perform backline.ring('backline_outbox') where cardinality(v_ids) > 0;
    return v_ids;
end $$;
comment on function backline.emit_events(text[], uuid[], uuid[], text[], text[], jsonb[], integer[], bigint[], uuid[], uuid[], text[], text[], uuid[], text[])
    is 'Appends many events, an array for each argument of emit_event. Ids come back in order. All or none.';

create function backline.emit_events(events jsonb) returns uuid[] language plpgsql volatile as $$
declare
    v_stray text;
begin
    if jsonb_typeof(events) is distinct from 'array' then
        raise exception 'emit_events: events must be a JSON array' using errcode = '22023';
    end if;
    -- A misspelled optional argument would be stored as its default.
    select case when jsonb_typeof(x.item) <> 'object' then format('events[%s] must be an object', x.ord - 1)
            else format('events[%s] has "%s", which is no argument of emit_event', x.ord - 1, left(k.key, 100)) end into v_stray
      from jsonb_array_elements(events) with ordinality x(item, ord)
      left join lateral jsonb_object_keys(case when jsonb_typeof(x.item) = 'object' then x.item end) k(key) on true
     where jsonb_typeof(x.item) <> 'object' or k.key <> all ('{event_type,organization,project,aggregate_type,aggregate_id,payload,schema_version,aggregate_version,correlation_id,causation_id,traceparent,tracestate,event_id,topic}'::text[])
     order by x.ord limit 1;
    if v_stray is not null then
        raise exception 'emit_events: %', v_stray using errcode = '22023';
    end if;
    return (select coalesce(backline.emit_events(array_agg(e.event_type), array_agg(e.organization),
                array_agg(e.project), array_agg(e.aggregate_type), array_agg(e.aggregate_id),
                array_agg(e.payload), array_agg(e.schema_version), array_agg(e.aggregate_version),
                array_agg(e.correlation_id), array_agg(e.causation_id), array_agg(e.traceparent),
                array_agg(e.tracestate), array_agg(e.event_id), array_agg(e.topic)), '{}')
          from (select r.* from jsonb_array_elements(events) with ordinality x(item, ord),
                jsonb_to_record(x.item) as r(event_type text, organization uuid, project uuid, aggregate_type text, aggregate_id text,
                    payload jsonb, schema_version integer, aggregate_version bigint, correlation_id uuid, causation_id uuid, traceparent text,
                    tracestate text, event_id uuid, topic text) order by x.ord) e);
end $$;
comment on function backline.emit_events(jsonb) is 'Appends an array of events; keys are the arguments of emit_event. Ids come back in order. All or none.';

create function backline.enqueue_operation(
    kind text,
    organization uuid,
    operation_key text,
    input jsonb,
    project uuid default null,
    input_version integer default 1,
    delay interval default null,
    expires_at timestamptz default null,
    serial_key text default null,
    priority smallint default 0,
    correlation_id uuid default null,
    causation_id uuid default null,
    traceparent text default null
) returns uuid language plpgsql volatile as $$
declare
    v_key text;
    v_id uuid;
begin
    if kind is null or length(kind) > 96 or kind !~ '^[a-z][a-z0-9_.-]*$' then
        raise exception 'enqueue_operation: kind "%" must be lower case letters, digits, _ . -, at most 96', left(kind, 100) using errcode = '22023';
    end if;
    if organization is null then
        raise exception 'enqueue_operation: organization is required' using errcode = '22023';
    end if;
    if operation_key is null or operation_key = '' then
        raise exception 'enqueue_operation: operation_key is required' using errcode = '22023';
    end if;
    if octet_length(operation_key) > 1000000 then
        raise exception 'enqueue_operation: operation_key has more than 1000000 bytes' using errcode = '54000';
    end if;
    if input is null then
        raise exception 'enqueue_operation: input is required' using errcode = '22023';
    end if;
    if pg_column_size(input) > 1000000 then
        raise exception 'enqueue_operation: input has more than 1000000 bytes; store the document and pass its reference' using errcode = '54000';
    end if;
    if input_version is null or input_version < 1 then
        raise exception 'enqueue_operation: input_version must be at least 1' using errcode = '22023';
    end if;
    if priority is null or priority not between 0 and 9 then
        raise exception 'enqueue_operation: priority must be 0 to 9' using errcode = '22023';
    end if;
    if delay < interval '0' or delay > interval '366 days' then
        raise exception 'enqueue_operation: delay must be between 0 and 366 days' using errcode = '22023';
    end if;
    if expires_at not between timestamptz '2000-01-01 00:00:00+00' and timestamptz '9999-01-01 00:00:00+00' then
        raise exception 'enqueue_operation: expires_at must lie between the years 2000 and 9999' using errcode = '22023';
    end if;
    if traceparent is not null and (length(traceparent) <> 55 or traceparent !~ '^[0-9a-f][0-9a-f]-[0-9a-f]+-[0-9a-f]+-[0-9a-f][0-9a-f]$'
        or substr(traceparent, 36, 1) <> '-') then
        raise exception 'enqueue_operation: traceparent is not of the W3C form' using errcode = '22023';
    end if;
    if serial_key = '' then
        raise exception 'enqueue_operation: serial_key must not be empty' using errcode = '22023';
    end if;
    v_key := backline.stored_key(operation_key);
    v_id := backline.operation_id(organization, kind, v_key);
    insert into backline.intake (operation_id, kind, organization, project, operation_key, input, input_version, delay, expires_at, serial_key,
        priority, correlation_id, causation_id, traceparent)
    values (v_id, kind, organization, project, v_key, input, input_version, delay, expires_at, backline.stored_key(serial_key),
        priority, coalesce(correlation_id, v_id), causation_id, traceparent);
    if exists (select from backline.sleeper s where s.channel = 'backline_intake' and s.asleep_until > clock_timestamp()) then
        perform pg_notify('backline_intake', '');
    end if;
    return v_id;
end $$;
comment on function backline.enqueue_operation is 'Asks for an operation in the caller''s transaction and returns its id. The same name asked twice is one operation; for reconcile kinds each committed request is a later generation.';

create function backline.cancel_operation(id uuid, reason text default 'cancelled by the producer') returns void
language plpgsql volatile as $$
begin
    if id is null then
        raise exception 'cancel_operation: id is required' using errcode = '22023';
    end if;
    insert into backline.cancel_request (operation_id, reason) values (id, left(coalesce(reason, ''), 500)) on conflict do nothing;
    if exists (select from backline.sleeper s where s.channel = 'backline_intake' and s.asleep_until > clock_timestamp()) then
        perform pg_notify('backline_intake', '');
    end if;
end $$;
comment on function backline.cancel_operation is 'Asks to cancel. A wish: an effect that may have been applied is not undone, its result wins; see operation_status.';

create function backline.operation_status(id uuid) returns table (
    operation_id uuid,
    kind text,
    state text,
    generation bigint,
    desired_generation bigint,
    outcome text,
    code text,
    output jsonb,
    attempt integer,
    due_at timestamptz,
    waiting_for text,
    cancel_requested boolean,
    finished_at timestamptz
) language sql stable as $$
    select o.id, o.kind, o.state::text, o.claimed_generation, o.desired_generation, null::text, o.failure_code, null::jsonb, o.attempt, o.due_at,
        o.waiting_for, o.cancel_requested_at is not null or exists (select from backline.cancel_request c where c.operation_id = o.id), null::timestamptz
      from backline.operation o where o.id = operation_status.id
    union all
    select * from (
        select h.id, h.kind, 'finished', h.generation, h.generation, h.outcome::text, h.code, h.output, h.attempt, null::timestamptz, null, false, h.finished_at
          from backline.operation_history h where h.id = operation_status.id
           and not exists (select from backline.operation o where o.id = operation_status.id)
         order by h.generation desc limit 1) finished
    union all
    select * from (
        select i.operation_id, i.kind, 'requested', null::bigint, null::bigint, null, null, null::jsonb, 0, null::timestamptz,
            case when not exists (select from backline.kind k where k.kind = i.kind and k.max_input_version >= i.input_version) then 'capability' end,
            exists (select from backline.cancel_request c where c.operation_id = i.operation_id), null::timestamptz
          from backline.intake i where i.operation_id = operation_status.id
           and not exists (select from backline.operation_identity d where d.id = operation_status.id)
         limit 1) requested
$$;
comment on function backline.operation_status(uuid) is 'What became of an operation: requested (committed, not folded yet), an open state, or finished with its outcome. No row: never asked for in any committed transaction visible here.';
