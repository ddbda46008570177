-- Invariant: reads only; who owes the event a seal, who gave one, and who set its delivery aside.
select c.consumer as "consumer!", s.sealed_at as "sealed_at?", extract(epoch from r.reoffer_after)::double precision as "reoffer_seconds?",
    d.state as "parked_state?", d.reason as "parked_reason?"
  from (select consumer from backline.required_consumer where event_type = $2
        union select consumer from backline.seal where event_id = $1
        union select consumer from backline.parked_delivery where event_id = $1) c
  left join backline.seal s on s.event_id = $1 and s.consumer = c.consumer
  left join backline.required_consumer r on r.event_type = $2 and r.consumer = c.consumer
  left join backline.parked_delivery d on d.event_id = $1 and d.consumer = c.consumer
 order by 1
