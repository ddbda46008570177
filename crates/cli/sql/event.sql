-- Invariant: reads only; an event waits, is parked, or was published, and may be offered again after that.
select e.id as "id!", e.event_type as "event_type!", e.schema_version as "schema_version!", e.organization, e.aggregate_type as "aggregate_type!",
    e.aggregate_id as "aggregate_id!", e.aggregate_version, e.topic as "topic!", e.correlation_id as "correlation_id!", e.causation_id,
    e.occurred_at as "occurred_at!", e.lane as "lane!", e.offers as "offers!", e.failures as "failures!", e.parked_at, e.parked_reason,
    e.message_id, e.published_at, l.owner as "lane_owner?"
  from (select id, event_type, schema_version, organization, aggregate_type, aggregate_id, aggregate_version, topic, correlation_id, causation_id,
            occurred_at, lane, offers, failures, parked_at, parked_reason, null::text as message_id, null::timestamptz as published_at
          from backline.outbox where id = $1
        union all
        select id, event_type, schema_version, organization, aggregate_type, aggregate_id, aggregate_version, topic, correlation_id, causation_id,
            occurred_at, lane, offers, failures, null, null, message_id, published_at
          from backline.outbox_published where id = $1) e
  left join backline.outbox_lane l on l.lane = e.lane
 order by e.published_at nulls last
