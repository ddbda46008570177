-- Invariant: entries of a lane are read in insertion order, and parked ones stay where they are.
select o.seq, o.id, o.event_type, o.schema_version, o.organization, o.project, o.topic, o.aggregate_type, o.aggregate_id,
       o.aggregate_version, o.correlation_id, o.causation_id, o.traceparent, o.tracestate, o.occurred_at,
       o.payload::text as "payload!"
  from (select b.*, sum(pg_column_size(b.payload)) over (order by b.seq rows unbounded preceding) as bytes
          from (select * from backline.outbox
                 where lane = $1 and seq > $2 and parked_at is null and topic <> all ($5::text[])
                 order by seq limit $3) b) o
 where o.bytes <= $4 or o.bytes = pg_column_size(o.payload) -- at least one entry, however large
 order by o.seq
