-- Invariant: reads only; every age and every "still" is by the database's clock.
select o.id, o.kind, o.organization, o.operation_key, o.mode::text as "mode!", o.state::text as "state!", o.waiting_for, o.priority, o.due_at,
    extract(epoch from o.due_at - clock_timestamp())::double precision as "due_in_seconds!", o.serial_key, o.serial::text as serial,
    o.desired_generation, o.claimed_generation, o.submission, o.may_have_left, o.repeatable, o.attempt, o.lookups, o.resolving,
    extract(epoch from o.absent_after - clock_timestamp())::double precision as absent_in_seconds, o.cancel_requested_at, o.expires_at,
    o.failure_class, o.failure_code, o.failure_detail, o.failed_at, o.correlation_id, o.causation_id, o.accepted_at,
    l.owner as "lease_owner?", extract(epoch from l.until - clock_timestamp())::double precision as lease_seconds,
    k.workload as "workload?", k.provider_account as "provider_account?", coalesce(k.irreversible, false) as "irreversible!",
    coalesce(k.native_idempotency and clock_timestamp() < o.first_submitted_at + k.idempotency_window, false) as "inside_window!",
    k.max_input_version as "max_input_version?", o.input_version, h.operation_id as "holder?", l2.next_due < 'infinity' as "lane_due?",
    extract(epoch from b.paused_until - clock_timestamp())::double precision as budget_paused_seconds, b.current_rate as "current_rate?",
    b.rate_per_second as "full_rate?",
    (select array_agg(p.scope || ' ' || p.name || ' by ' || p.paused_by || ': ' || p.reason) from backline.pause p
      where (p.scope = 'organization' and p.name = o.organization::text) or (p.scope = 'workload' and p.name = k.workload)
         or (p.scope = 'provider_account' and p.name = k.provider_account)) as pauses
  from backline.operation o left join backline.kind k on k.kind = o.kind left join backline.lease l on l.id = o.lease_id
  left join backline.serial_hold h on h.organization = o.organization and h.serial_key = o.serial_key
  left join backline.ready_lane l2 on l2.kind = o.kind and l2.organization = o.organization and l2.priority = o.priority
  left join backline.provider_budget b on b.provider_account = k.provider_account
 where o.id = $1
