-- Invariant: read in the transaction that has just tried to put the pause, whose row it holds.
select reason, paused_by, paused_at from backline.pause where scope = $1 and name = $2
