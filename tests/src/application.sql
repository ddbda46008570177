-- The application's side of a stack: business tables, rows that records write, and a witness of every token.
create schema app;
create table app.orders (id text primary key, state text not null);
create table app.desired (key text primary key, n bigint not null);
create table app.done (operation uuid not null, generation bigint not null, outcome text not null, at timestamptz not null default clock_timestamp());
create table app.token_log (seq bigint generated always as identity, operation uuid not null, token bigint not null, at timestamptz not null default clock_timestamp());
create function app.witness() returns trigger language plpgsql as $$
begin
    insert into app.token_log (operation, token) values (new.id, new.token);
    return null;
end $$;
create trigger witness after update of token on backline.operation for each row
    when (new.token is not null and new.token is distinct from old.token) execute function app.witness();
create function app.refuse() returns trigger language plpgsql as $$
begin
    raise exception 'outcomes are append-only';
end $$;
create trigger append_only before update or delete on backline.operation_history for each row execute function app.refuse();
create trigger append_only before update or delete on backline.attempt_evidence for each row execute function app.refuse();
