-- Invariant: the newest declaration wins, but what a build can read never shrinks below what another running build declared.
insert into backline.kind as k (kind, workload, mode, provider_account, serial, native_idempotency, financial, irreversible, idempotency_window, linger,
    lookup_lag, request_timeout, max_input_version, keep_input, retention_class, identity_window, declared_at)
values ($1, $2, ($3::text)::backline.operation_mode, $4, ($5::text)::backline.serial_mode, $6, $7, $8, $9::bigint * interval '1 millisecond',
    $10::bigint * interval '1 millisecond', $11::bigint * interval '1 millisecond', $12::bigint * interval '1 millisecond', $13, $14, $15,
    $16::bigint * interval '1 millisecond', clock_timestamp())
on conflict (kind) do update set workload = excluded.workload, mode = excluded.mode, provider_account = excluded.provider_account, serial = excluded.serial,
    native_idempotency = excluded.native_idempotency, financial = excluded.financial, irreversible = excluded.irreversible,
    idempotency_window = excluded.idempotency_window, linger = excluded.linger, lookup_lag = excluded.lookup_lag, request_timeout = excluded.request_timeout,
    max_input_version = greatest(k.max_input_version, excluded.max_input_version), keep_input = excluded.keep_input,
    retention_class = excluded.retention_class, identity_window = excluded.identity_window, declared_at = excluded.declared_at
