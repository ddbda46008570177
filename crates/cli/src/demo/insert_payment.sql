-- Invariant: one row per payment, however often its transaction is repeated.
insert into payments (id, organization, minor, payee) values ($1, $2, $3, $4) on conflict (id) do nothing
