-- Invariant: reads only; the topics that unpublished, unparked entries name.
select topic as "topic!", sum(entries)::bigint as "entries!", max(oldest_seconds)::double precision as "oldest_seconds!"
  from backline.v_unpublished where entries > 0 group by topic order by topic
