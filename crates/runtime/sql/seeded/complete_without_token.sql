-- Seeded bug 4: whoever brings a result completes the operation, whose claim it is does not matter.
with l as (insert into backline.lease (id, process, owner, until) overriding system value
    select $4, gen_random_uuid(), 'seeded', 'infinity' where exists (select from backline.operation where id = $1 and state = 'running')
    on conflict (id) do update set until = 'infinity' returning id)
update backline.operation o set token = $2, nonce = $3, lease_id = l.id from l where o.id = $1 and o.state = 'running'
