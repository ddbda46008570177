-- Invariant: reads only; a request that was committed and not folded into an operation yet.
select i.kind, i.organization, i.operation_key, i.input_version, i.requested_at, i.correlation_id, i.causation_id,
    k.max_input_version as "max_input_version?"
  from backline.intake i left join backline.kind k on k.kind = i.kind where i.operation_id = $1 order by i.seq limit 1
