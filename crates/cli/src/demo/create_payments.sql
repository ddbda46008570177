-- Invariant: the application's own table; Backline knows nothing of it.
create table payments (
    id text primary key,
    organization uuid not null,
    minor bigint not null check (minor > 0),
    payee text not null,
    created_at timestamptz not null default clock_timestamp()
)
