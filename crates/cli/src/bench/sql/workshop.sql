-- The application's side of a business transaction, and what handlers write.
create schema if not exists bench;
create or replace function bench.payload(n bigint) returns jsonb language sql volatile as $$
    select jsonb_build_object('seq', n, 'tenant', 't-0042', 'kind', 'document.index', 'trace', md5(n::text), 'blob', repeat(md5((n * 7)::text), 9) || 'abcdefgh') $$;
create table if not exists bench.biz (id bigint generated always as identity primary key, body jsonb not null, v integer not null default 0);
create table if not exists bench.effect (operation_id uuid primary key, at timestamptz not null default clock_timestamp());
insert into bench.biz (body) select bench.payload(g) from generate_series(1, 100000) g where not exists (select from bench.biz);
insert into backline.kind (kind, workload, mode, provider_account, serial, native_idempotency, idempotency_window, request_timeout, keep_input)
select 'bench.' || k, 'bench', 'command', 'bench:none', 'exclusive', true, '1 hour', '10 s', false from unnest(array['noop', 'recording', 'stamp', 'slow']) k
on conflict (kind) do nothing;
create table if not exists bench.desired (id bigint primary key, organization uuid not null, version bigint not null);
insert into backline.kind (kind, workload, mode, provider_account, serial, native_idempotency, request_timeout, keep_input)
values ('bench.follow', 'bench', 'reconcile', 'bench:none', 'exclusive', false, '10 s', false)
on conflict (kind) do nothing
