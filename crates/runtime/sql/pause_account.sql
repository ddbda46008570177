-- Invariant: a provider account that refuses our credentials gets no more calls until a person or a new start resumes it.
insert into backline.pause (scope, name, reason, paused_by) values ('provider_account', $1, 'blocked by the provider: ' || $2::text, 'breaker')
on conflict (scope, name) do nothing
