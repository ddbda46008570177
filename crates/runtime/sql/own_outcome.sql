-- Invariant: a finish whose COMMIT reply was lost recognizes its own outcome by token and nonce, and is a success.
select h.id from backline.operation_history h join unnest($1::uuid[], $2::bigint[], $3::bigint[]) as d(id, token, nonce)
    on h.id = d.id and h.token = d.token and h.nonce = d.nonce
