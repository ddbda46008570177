-- Invariant: concurrency that nobody uses is nobody's.
delete from backline.budget_slice where provider_account = $1 and process = $2
