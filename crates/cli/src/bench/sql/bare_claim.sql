-- The least that a fair, serial, fenced claim needs, in one statement (the design check before any Rust): no marks, no caps, no pauses.
with lanes as materialized (select kind, organization, priority from backline.ready_lane where kind = $1 and next_due <= now()
     order by last_claimed limit 10 for update skip locked),
e as (insert into backline.lease (process, owner, until) values ($3, 'bare', clock_timestamp() + interval '30 s') returning id),
t as (update backline.ready_lane r set last_claimed = clock_timestamp() from lanes l
     where r.kind = l.kind and r.organization = l.organization and r.priority = l.priority),
c as materialized (select o.id, l.organization, o.serial_key from lanes l cross join lateral (
        select id, serial_key from backline.operation o where o.kind = $1 and o.organization = l.organization and o.priority = l.priority
           and o.state = 'ready' and o.due_at <= now() order by o.due_at, o.id limit $2 for update skip locked) o),
h as (insert into backline.serial_hold (organization, serial_key, operation_id)
    select organization, serial_key, id from c where serial_key is not null on conflict do nothing returning operation_id),
u as (update backline.operation o set state = 'running', token = nextval('backline.claim_token'), nonce = $4, attempt = attempt + 1,
        claimed_generation = desired_generation, lease_id = (select id from e)
     from c where o.id = c.id and (c.serial_key is null or c.id in (select operation_id from h)) returning o.*)
select u.id, u.token, u.lease_id, u.input::text as input from u
