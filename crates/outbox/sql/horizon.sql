-- Invariant: every entry inserted so far has a number at or below this one; later ones are above it.
select last_value as "horizon!" from backline.outbox_seq_seq
