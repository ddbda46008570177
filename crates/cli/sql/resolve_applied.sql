-- Invariant: only a manual operation at the submission that was judged succeeds by a person's evidence; its key is released.
with k as (delete from backline.operation o
     where o.id = $1 and o.state = 'manual' and o.submission = $2 and o.lease_id is null
       and o.desired_generation = coalesce(o.claimed_generation, o.desired_generation) returning o.*),
h as (delete from backline.serial_hold s using k where s.organization = k.organization and s.serial_key = k.serial_key and s.operation_id = k.id),
i as (insert into backline.operation_history (id, generation, kind, organization, project, operation_key, occurrence, mode, outcome, code, detail, output,
        input, submission, attempt, serial_key, correlation_id, causation_id, traceparent, accepted_at, first_failed_at, retention_class)
    select k.id, k.desired_generation, k.kind, k.organization, k.project, k.operation_key, k.occurrence, k.mode, 'succeeded', 'resolved_by_operator',
        $3, ($4::text)::jsonb, case when coalesce(q.keep_input, true) then k.input end, k.submission, k.attempt, k.serial_key, k.correlation_id,
        k.causation_id, k.traceparent, k.accepted_at, k.first_failed_at, coalesce(q.retention_class, 'standard')
      from k left join backline.kind q on q.kind = k.kind)
select k.organization, k.serial_key from k
