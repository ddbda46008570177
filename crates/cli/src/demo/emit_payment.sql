-- Invariant: the intent is committed with the payment's row, or neither is.
select backline.emit_event('PaymentAuthorized', $1, $1, 'payment', $2, $3, event_id => $4)
