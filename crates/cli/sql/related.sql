-- Invariant: reads only; operations of one business request. History is bounded by time, so that only its partitions are read.
select r.id as "id!", r.kind as "kind!", r.operation_key as "operation_key!", r.state as "state!", r.causation_id
  from (select id, kind, operation_key, state::text as state, causation_id, accepted_at as at from backline.operation where correlation_id = $1
        union all
        select id, kind, operation_key, outcome::text, causation_id, accepted_at
          from backline.operation_history where correlation_id = $1 and finished_at >= $2
        union all
        select operation_id, kind, operation_key, 'requested', causation_id, requested_at from backline.intake where correlation_id = $1) r
 order by r.at limit 100
