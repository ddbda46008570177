-- Invariant: a committed request leaves intake exactly with the transaction that makes it an operation; newer versions than we read stay,
-- and so does a request of a fifo key behind one that somebody else is taking: it would be accepted before it.
with k as (
    select k.kind, k.max_input_version, coalesce(k.serial = 'fifo', false) as fifo, case when $3 then 0 else coalesce(m.mark_seq, 0) end as mark_seq
      from backline.kind k left join backline.intake_mark m using (kind) where k.kind = any($1)),
p as materialized (
    select i.*, k.fifo from k cross join lateral (
        select i.seq, i.kind, i.organization, i.serial_key from backline.intake i
         where i.kind = k.kind and i.seq > k.mark_seq and i.input_version <= k.max_input_version
         order by i.seq limit $2 for update skip locked) i),
e as materialized (
    select i.kind, i.organization, i.serial_key, min(i.seq) as seq from k cross join lateral (
        select i.seq, i.kind, i.organization, i.serial_key from backline.intake i
         where i.kind = k.kind and i.seq > k.mark_seq and i.seq < (select max(p.seq) from p where p.kind = k.kind)
           and i.serial_key is not null and i.input_version <= k.max_input_version offset 0) i
     where k.fifo and i.seq not in (select seq from p) group by 1, 2, 3)
delete from backline.intake i using p where i.seq = p.seq and not (p.fifo and exists (select from e
    where e.kind = p.kind and e.organization = p.organization and e.serial_key = p.serial_key and e.seq < p.seq))
returning i.seq, i.operation_id, i.kind, i.organization, i.project, i.operation_key, i.input::text as "input!", i.input_version,
    (extract(epoch from i.delay) * 1000)::bigint as delay_ms, i.expires_at, i.serial_key, i.priority, i.correlation_id, i.causation_id,
    i.traceparent
