-- Invariant: a wish, honored by the runtime only while nothing can have been applied.
select backline.cancel_operation($1, $2)
