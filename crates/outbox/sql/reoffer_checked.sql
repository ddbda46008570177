-- Invariant: the comparison only moves forward.
update backline.required_consumer set checked_to = $3
 where event_type = $1 and consumer = $2 and checked_to < $3
