-- Invariant: a ready and due operation goes to one claimer, with its serial key held; a loser waits only while the holder is surely there.
-- Holds are looked up one by one (offset 0): a join may start at their table, which statistics take for empty when they were made in a quiet minute.
with c as materialized (
    select q.organization, o.id, o.serial_key from unnest($1::text[], $2::uuid[], $3::smallint[], $4::timestamptz[], $5::uuid[], $6::int[])
        as q(kind, organization, priority, mark_due, mark_id, quota) cross join lateral (
        select o.id, o.serial_key from backline.operation o
         where o.kind = q.kind and o.organization = q.organization and o.priority = q.priority and o.state = 'ready'
           and o.due_at <= statement_timestamp() and (o.due_at, o.id) >= (q.mark_due, q.mark_id)
         order by o.due_at, o.id limit q.quota for update skip locked) o),
e as (insert into backline.lease (process, owner, until) select $7, $8, clock_timestamp() + $9::bigint * interval '1 millisecond' where exists (select from c) returning id),
v as materialized (select x.* from c cross join lateral (select x.* from backline.serial_hold x
     where x.organization = c.organization and x.serial_key = c.serial_key offset 0) x),
h as (insert into backline.serial_hold (organization, serial_key, operation_id)
    select c.organization, c.serial_key, c.id from c where c.serial_key is not null
        and (c.organization, c.serial_key) not in (select organization, serial_key from v)
     order by 1, 2 on conflict do nothing returning organization, serial_key, operation_id),
s as materialized (select x.organization, x.serial_key from (select distinct organization, serial_key from v where (select count(*) from h) >= 0) v
     cross join lateral (select x.* from backline.serial_hold x where x.organization = v.organization and x.serial_key = v.serial_key for share skip locked) x),
u as (update backline.operation o set state = 'running', token = nextval('backline.claim_token'), nonce = $10, lease_id = (select id from e),
        attempt = o.attempt + 1, claimed_generation = o.desired_generation, resolving = false,
        first_submitted_at = coalesce(o.first_submitted_at, clock_timestamp())
     from c where o.id = c.id and (c.serial_key is null or c.id in (select operation_id from h) or c.id in (select operation_id from v)) returning o.*),
w as (update backline.operation o set state = 'waiting', waiting_for = 'serial' from c
     where o.id = c.id and c.serial_key is not null and c.id not in (select operation_id from h) and c.id not in (select operation_id from v)
       and ((c.organization, c.serial_key) in (select organization, serial_key from s)
         or (c.organization, c.serial_key) in (select organization, serial_key from h)))
select u.id, u.kind, u.organization, u.project, u.operation_key, u.input::text as "input!", u.input_version, u.priority, u.token as "token!",
    u.lease_id as "lease_id!", u.claimed_generation as "generation!", u.submission, u.attempt, u.lookups, u.resolving, u.may_have_left, u.correlation_id, u.causation_id,
    u.traceparent, u.accepted_at, u.cancel_requested_at is not null as "cancel_requested!", coalesce(u.expires_at <= clock_timestamp(), false) as "expired!",
    null::bigint as absent_in_ms, u.first_submitted_at, clock_timestamp() as "claimed_at!"
  from u
