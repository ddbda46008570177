-- Invariant: reads only; one row per generation that ended.
select h.id, h.generation, h.kind, h.organization, h.operation_key, h.outcome::text as "outcome!", h.code, h.detail, h.output, h.submission, h.attempt,
    h.correlation_id, h.causation_id, h.successor, h.accepted_at, h.finished_at
  from backline.operation_history h where h.id = $1 order by h.generation
