-- Invariant: an unknown keeps its key and its submission: it is repeated with the same key inside the provider's window while still wanted, or looked up.
with c as materialized (
    select o.id, not (k.native_idempotency and o.repeatable and o.lookups = 0 and o.attempt < m.repeats
        and o.cancel_requested_at is null and coalesce(o.expires_at > clock_timestamp(), true)
        and clock_timestamp() < o.first_submitted_at + k.idempotency_window) as resolving
      from unnest($1::text[], $7::int[]) as m(kind, repeats) join backline.kind k on k.kind = m.kind
      join backline.operation o on o.kind = m.kind
     where o.state = 'unknown' and o.due_at <= statement_timestamp()
       and not exists (select from backline.pause p where (p.scope = 'provider_account' and p.name = k.provider_account)
            or (p.scope = 'workload' and p.name = k.workload) or (p.scope = 'organization' and p.name = o.organization::text))
     order by o.due_at, o.id limit $2 for update of o skip locked),
e as (insert into backline.lease (process, owner, until) select $3, $4, clock_timestamp() + $5::bigint * interval '1 millisecond' where exists (select from c) returning id)
update backline.operation o set state = 'running', token = nextval('backline.claim_token'), nonce = $6, lease_id = (select id from e),
    attempt = o.attempt + case when c.resolving then 0 else 1 end, resolving = c.resolving,
    claimed_generation = coalesce(o.claimed_generation, o.desired_generation)
  from c where o.id = c.id
returning o.id, o.kind, o.organization, o.project, o.operation_key, o.input::text as "input!", o.input_version, o.priority, o.token as "token!",
    o.lease_id as "lease_id!", o.claimed_generation as "generation!", o.submission, o.attempt, o.lookups, o.resolving, o.may_have_left, o.correlation_id, o.causation_id,
    o.traceparent, o.accepted_at, o.cancel_requested_at is not null as "cancel_requested!", coalesce(o.expires_at <= clock_timestamp(), false) as "expired!",
    (extract(epoch from o.absent_after - clock_timestamp()) * 1000)::bigint as absent_in_ms, o.first_submitted_at, clock_timestamp() as "claimed_at!"
