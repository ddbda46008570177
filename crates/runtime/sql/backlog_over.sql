-- Invariant: the watermark is counted no further than it reaches.
select count(*) >= $2 as "over!" from (select from backline.operation o where o.state = 'ready' and o.kind = any($1) limit $2) ready
