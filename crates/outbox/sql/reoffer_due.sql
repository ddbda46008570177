-- Invariant: one sweep at a time works on a (event type, consumer); others pass it by.
select event_type, consumer, reoffer_after, greatest(checked_to, declared_at) as "from!"
  from backline.required_consumer
 where event_type = $1 and consumer = $2
   for no key update skip locked
