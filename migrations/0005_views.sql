-- Backline, what is unfinished: the views that metrics must agree with (obligation D14).

create view backline.v_unpublished as
select o.topic, count(*) as entries, coalesce(extract(epoch from clock_timestamp() - min(o.occurred_at)), 0)::double precision as oldest_seconds
  from backline.outbox o where o.parked_at is null group by o.topic;
comment on view backline.v_unpublished is 'Entries that wait for the broker''s confirmation, and the age of the oldest.';

create view backline.v_parked as
select 'outbox'::text as source, o.event_type as name, o.parked_reason as reason, count(*) as entries,
    extract(epoch from clock_timestamp() - min(o.parked_at))::double precision as oldest_seconds
  from backline.outbox o where o.parked_at is not null group by 2, 3
union all
select 'delivery', d.consumer, d.state || ': ' || d.reason, count(*), extract(epoch from clock_timestamp() - min(d.first_at))::double precision
  from backline.parked_delivery d where d.state <> 'accepted' group by 2, 3;
comment on view backline.v_parked is 'Outbox entries and deliveries that were set aside, with reasons.';

create view backline.v_open_operations as
select k.workload, k.provider_account, o.kind, o.state::text as state, coalesce(o.waiting_for, '') as waiting_for,
    coalesce(o.failure_class, '') as failure_class, count(*) as operations,
    extract(epoch from clock_timestamp() - min(o.accepted_at))::double precision as oldest_seconds,
    extract(epoch from clock_timestamp() - min(o.failed_at))::double precision as oldest_failure_seconds
  from backline.operation o join backline.kind k using (kind) group by 1, 2, 3, 4, 5, 6;
comment on view backline.v_open_operations is 'Unfinished operations by workload, provider, state and class of the last failure, with the age of the oldest.';

create view backline.v_requested as
select i.kind, count(*) as requests, extract(epoch from clock_timestamp() - min(i.requested_at))::double precision as oldest_seconds,
    not bool_and(exists (select from backline.kind k where k.kind = i.kind and k.max_input_version >= i.input_version)) as waits_for_capability
  from backline.intake i group by 1;
comment on view backline.v_requested is 'Requests not folded yet; waits_for_capability: no declared workload can perform some of them.';

create view backline.v_outcomes_last_hour as
select h.kind, h.outcome::text as outcome, coalesce(h.code, '') as code, count(*) as operations,
    percentile_cont(0.5) within group (order by extract(epoch from h.finished_at - h.accepted_at)) as p50_seconds,
    percentile_cont(0.99) within group (order by extract(epoch from h.finished_at - h.accepted_at)) as p99_seconds
  from backline.operation_history h where h.finished_at > clock_timestamp() - interval '1 hour' group by 1, 2, 3;
comment on view backline.v_outcomes_last_hour is 'Outcomes of the last hour and the time from acceptance to completion.';

create view backline.v_attempts_last_hour as
select o.kind, e.class, e.code, e.fenced, count(*) as attempts
  from backline.attempt_evidence e
  join (select id, kind from backline.operation_identity) o on o.id = e.operation_id
 where e.at > clock_timestamp() - interval '1 hour' group by 1, 2, 3, 4;
comment on view backline.v_attempts_last_hour is 'Attempts of the last hour that did not complete, by class: retries, unknowns, fenced writes.';

create view backline.v_expired_leases as
select l.owner, count(o.id) as operations, extract(epoch from clock_timestamp() - min(l.until))::double precision as oldest_seconds
  from backline.lease l left join backline.operation o on o.lease_id = l.id where l.until < clock_timestamp() group by 1;
comment on view backline.v_expired_leases is 'Leases past their end that the sweep has not reclaimed yet.';

create view backline.v_oldest_snapshot as
select coalesce(max(age(backend_xmin)), 0) as transactions, coalesce(extract(epoch from clock_timestamp() - min(xact_start)), 0)::double precision as oldest_seconds
  from pg_stat_activity where backend_xmin is not null and pid <> pg_backend_pid();
comment on view backline.v_oldest_snapshot is 'How far a held snapshot keeps dead rows: the bloat alarm.';
