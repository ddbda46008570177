-- Invariant: the mark only bounds where scanning starts and trails the producers' commit lag; the unmarked scan is the truth.
insert into backline.intake_mark as m (kind, mark_seq, unmarked_at)
select kind, mark_seq, case when $3 then clock_timestamp() else '-infinity' end
  from unnest($1::text[], $2::bigint[]) as n(kind, mark_seq) order by kind
on conflict (kind) do update set mark_seq = greatest(m.mark_seq, excluded.mark_seq), unmarked_at = greatest(m.unmarked_at, excluded.unmarked_at)
