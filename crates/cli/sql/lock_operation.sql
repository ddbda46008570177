-- Invariant: a decision is made about the operation as it is locked here, not as it was shown.
select o.kind, o.organization, o.state::text as "state!", o.submission, o.serial_key, o.failure_class, o.failure_code, o.mode::text as "mode!",
    coalesce(k.irreversible, false) as "irreversible!"
  from backline.operation o left join backline.kind k on k.kind = o.kind where o.id = $1 for update of o
