-- Invariant: a generation that ended while a newer one was asked for gets its outcome, and the operation is ready again for the newer one:
-- now, or ($9) as the verifying read when nothing of an abandoned attempt can land any more.
with d as materialized (select * from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[])
        as d(id, token, nonce, lease_id, outcome, code, detail, output)),
p as materialized (select o.* from backline.operation o join d on d.id = o.id
     where o.token = d.token and o.nonce = d.nonce and o.lease_id is not distinct from d.lease_id and o.desired_generation > o.claimed_generation order by o.id for update of o),
u as (update backline.operation o set state = 'ready', token = null, nonce = null, lease_id = null, claimed_generation = null, attempt = 0, lookups = 0,
        submission = 1, first_submitted_at = null, may_have_left = false, repeatable = true,
        absent_after = case when p.mode = 'reconcile' and not $9 then p.absent_after end,
        due_at = case when $9 then greatest(clock_timestamp(), p.absent_after) else clock_timestamp() end,
        failure_class = null, failure_code = null, failure_detail = null, failed_at = null, first_failed_at = null
     from p where o.id = p.id returning o.id, o.due_at),
h as (delete from backline.serial_hold s using p cross join lateral (select x.ctid as at from backline.serial_hold x
     where x.organization = p.organization and x.serial_key = p.serial_key and x.operation_id = p.id offset 0) x where s.ctid = x.at and p.serial is distinct from 'fifo'),
i as (insert into backline.operation_history (id, generation, kind, organization, project, operation_key, occurrence, mode, outcome, code, detail, output,
        input, submission, attempt, token, nonce, serial_key, correlation_id, causation_id, traceparent, accepted_at, first_failed_at, retention_class)
    select p.id, p.claimed_generation, p.kind, p.organization, p.project, p.operation_key, p.occurrence, p.mode, d.outcome::backline.outcome_kind, d.code,
        d.detail, d.output::jsonb, case when q.keep_input then p.input end, p.submission, p.attempt, p.token, p.nonce, p.serial_key, p.correlation_id,
        p.causation_id, p.traceparent, p.accepted_at, p.first_failed_at, q.retention_class
      from p join d on d.id = p.id join backline.kind q using (kind))
select p.id, p.kind, p.organization, p.priority, p.serial_key, u.due_at from p join u on u.id = p.id
