-- Invariant: an entry leaves the outbox only with the broker's confirmation, and only for the lane's current holder.
with held as materialized (
    update backline.outbox_lane
       set until = clock_timestamp() + make_interval(secs => $6)
     where lane = $1 and token = $2 and nonce = $3
    returning lane),
confirmed as (
    delete from backline.outbox o
     using held h, unnest($4::bigint[], $5::text[]) as c(seq, message_id)
     where o.lane = h.lane and o.seq = c.seq
    returning o.*, c.message_id),
kept as (
    insert into backline.outbox_published (lane, seq, id, event_type, schema_version, organization, project, topic,
        aggregate_type, aggregate_id, aggregate_version, correlation_id, causation_id, traceparent, tracestate, occurred_at,
        payload, encryption_key_ref, offers, failures, message_id)
    select lane, seq, id, event_type, schema_version, organization, project, topic,
        aggregate_type, aggregate_id, aggregate_version, correlation_id, causation_id, traceparent, tracestate, occurred_at,
        payload, encryption_key_ref, offers, failures, message_id
      from confirmed
    returning 1)
select exists (select from held) as "held!", (select count(*) from kept) as "published!"
