-- What became of each desired state: its version counts the committed bumps, each of which is a generation; outcomes are of the newest that ended.
select d.id, d.version, coalesce(i.last_generation, 0) as accepted, h.generation as ended, h.outcome::text as outcome,
    (h.output->>'version')::bigint as shown, exists (select from backline.operation o where o.id = n.id) as open
  from bench.desired d cross join lateral (select backline.operation_id(d.organization, $1, d.id::text) as id) n
  left join backline.operation_identity i on i.id = n.id
  left join lateral (select generation, outcome, output from backline.operation_history h where h.id = n.id order by generation desc limit 1) h on true
 order by d.id
