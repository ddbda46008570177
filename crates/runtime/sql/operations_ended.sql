-- Invariant: an operation has ended only when nothing of it is open and no request for it waits in the intake: a newer generation is not over with the one before.
select s.operation_id as "id!", s.state as "state!", s.generation, s.outcome, s.code, s.output::text as output,
    exists (select from backline.intake i where i.operation_id = s.operation_id) as "asked!"
  from unnest($1::uuid[]) as w(id), lateral backline.operation_status(w.id) s
