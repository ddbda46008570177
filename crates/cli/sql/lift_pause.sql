-- Invariant: claims go on with the next round after the commit.
delete from backline.pause where scope = $1 and name = $2 returning reason, paused_by, paused_at
