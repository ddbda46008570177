-- Invariant: every required consumer is compared, in a fixed order.
select event_type, consumer from backline.required_consumer order by event_type, consumer
