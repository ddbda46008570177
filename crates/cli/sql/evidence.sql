-- Invariant: reads only; every attempt that did not end its operation, in order.
select at, generation, submission, attempt, fenced, class, code, detail, evidence
  from backline.attempt_evidence where operation_id = $1 order by at limit 200
