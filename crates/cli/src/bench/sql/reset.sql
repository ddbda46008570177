-- Empties what earlier runs left; declared kinds and the incarnation stay.
truncate backline.operation, backline.operation_history, backline.operation_identity, backline.intake, backline.intake_mark,
    backline.serial_hold, backline.ready_lane, backline.lease, backline.attempt_evidence, backline.cancel_request, backline.outbox,
    backline.outbox_published, backline.seal, backline.parked_delivery, backline.sleeper, backline.pause, backline.required_consumer,
    bench.effect, bench.desired
