-- Invariant: who is awake is not notified.
delete from backline.sleeper where listener = $1
