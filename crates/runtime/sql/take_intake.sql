-- Invariant: a committed request leaves intake exactly with the transaction that makes it an operation; newer versions than we read stay.
with k as (
    select k.kind, k.max_input_version, case when $3 then 0 else coalesce(m.mark_seq, 0) end as mark_seq
      from backline.kind k left join backline.intake_mark m using (kind) where k.kind = any($1)),
p as materialized (
    select i.seq from k cross join lateral (
        select i.seq from backline.intake i
         where i.kind = k.kind and i.seq > k.mark_seq and i.input_version <= k.max_input_version
         order by i.seq limit $2 for update skip locked) i)
delete from backline.intake i using p where i.seq = p.seq
returning i.seq, i.operation_id, i.kind, i.organization, i.project, i.operation_key, i.input::text as "input!", i.input_version,
    (extract(epoch from i.delay) * 1000)::bigint as delay_ms, i.expires_at, i.serial_key, i.priority, i.correlation_id, i.causation_id,
    i.traceparent
