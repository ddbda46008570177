-- Invariant: only the current claim (token and nonce, still under its lease) ends the generation it claimed, and only while none newer is asked for.
-- Who takes an operation away locks its row. The lease is compared so that no index serves it: the operation is found by its id.
-- Holds are looked up one by one (offset 0): a join may start at their table, which statistics take for empty when they were made in a quiet minute.
with d as materialized (select * from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[])
        as d(id, token, nonce, lease_id, outcome, code, detail, output)),
k as (delete from backline.operation o using d
     where o.id = d.id and o.token = d.token and o.nonce = d.nonce and o.lease_id is not distinct from d.lease_id
       and o.desired_generation = o.claimed_generation and (o.mode <> 'reconcile' or o.absent_after is null or o.absent_after <= o.first_submitted_at)
    returning o.*, d.outcome, d.code, d.detail, d.output),
h as (delete from backline.serial_hold s using k cross join lateral (select x.ctid as at from backline.serial_hold x
     where x.organization = k.organization and x.serial_key = k.serial_key and x.operation_id = k.id offset 0) x where s.ctid = x.at),
i as (insert into backline.operation_history (id, generation, kind, organization, project, operation_key, occurrence, mode, outcome, code, detail, output,
        input, submission, attempt, token, nonce, serial_key, correlation_id, causation_id, traceparent, accepted_at, first_failed_at, retention_class)
    select k.id, k.claimed_generation, k.kind, k.organization, k.project, k.operation_key, k.occurrence, k.mode, k.outcome::backline.outcome_kind, k.code,
        k.detail, k.output::jsonb, case when q.keep_input then k.input end, k.submission, k.attempt, k.token, k.nonce, k.serial_key, k.correlation_id,
        k.causation_id, k.traceparent, k.accepted_at, k.first_failed_at, q.retention_class
      from k join backline.kind q using (kind))
select k.id, k.organization, k.serial_key from k
