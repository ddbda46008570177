-- Seeded bug 22: a wish to cancel ends what is running, whatever the provider does meanwhile.
update backline.operation o set state = 'ready', token = null, nonce = null, lease_id = null
  from backline.cancel_request c where c.operation_id = o.id and o.state in ('running', 'unknown')
