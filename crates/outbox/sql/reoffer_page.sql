-- Invariant: a published event that a required consumer has not sealed in time goes back, id and bytes unchanged, or is parked.
with page as materialized (
    select p.lane, p.seq, p.id, p.published_at,
           not exists (select from backline.seal s where s.event_id = p.id and s.consumer = $2) as owed
      from backline.outbox_published p
     where p.event_type = $1 and p.published_at > $3 and p.published_at <= clock_timestamp() - $4::interval
     order by p.published_at fetch first $5 rows with ties), -- ties: the next page starts behind the last time
back as (
    delete from backline.outbox_published p using page o
     where o.owed and p.event_type = $1 and p.published_at = o.published_at and p.id = o.id
    returning p.*),
offered as (
    insert into backline.outbox (lane, id, event_type, schema_version, organization, project, topic, aggregate_type,
        aggregate_id, aggregate_version, correlation_id, causation_id, traceparent, tracestate, occurred_at, payload,
        encryption_key_ref, offers, failures, parked_at, parked_reason)
    select lane, id, event_type, schema_version, organization, project, topic, aggregate_type,
        aggregate_id, aggregate_version, correlation_id, causation_id, traceparent, tracestate, occurred_at, payload,
        encryption_key_ref, offers + 1, failures, case when offers >= $6 then clock_timestamp() end,
        case when offers >= $6 then format('consumer %s has not sealed it after %s offers', $2::text, offers) end
      from back
    returning parked_at)
select (select count(*) from page) as "looked_at!", (select max(published_at) from page) as checked_to,
       (select count(*) from offered where parked_at is null) as "offered!",
       (select count(*) from offered where parked_at is not null) as "parked!"
