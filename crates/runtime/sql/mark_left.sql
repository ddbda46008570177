-- Invariant: a kind without native idempotency may reach its provider only after this mark is committed by the current claim.
update backline.operation o set may_have_left = true
  from unnest($1::uuid[], $2::bigint[], $3::bigint[]) as d(id, token, nonce)
 where o.id = d.id and o.token = d.token and o.nonce = d.nonce
returning o.id
