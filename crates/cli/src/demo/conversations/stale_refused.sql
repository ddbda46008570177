-- Invariant: reads only; each line of evidence once, however often its operation has ended.
select count(*) from backline.attempt_evidence e
 where e.fenced and exists (select from backline.operation_history h where h.id = e.operation_id and h.kind like 'twilio.%')
