-- Invariant: reads only. Members' convergence of one conversation: with a refused stale write before others, and short.
select h.operation_key from backline.operation_history h
  join backline.attempt_evidence e on e.operation_id = h.id
 where h.kind = 'twilio.participants'
 group by h.operation_key order by bool_or(e.fenced) desc, count(*) limit 1
