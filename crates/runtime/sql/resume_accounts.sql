-- Invariant: only the breaker's own pauses are lifted by a start (new credentials come with one); a person's stay.
delete from backline.pause where scope = 'provider_account' and name = any($1) and paused_by = 'breaker' returning name
