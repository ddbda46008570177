-- Invariant: append-only; a fenced holder's reply is kept, never applied.
insert into backline.attempt_evidence (operation_id, generation, submission, attempt, token, fenced, class, code, detail, evidence)
select operation_id, generation, submission, attempt, token, fenced, class, code, detail, evidence::jsonb
  from unnest($1::uuid[], $2::bigint[], $3::int[], $4::int[], $5::bigint[], $6::boolean[], $7::text[], $8::text[], $9::text[], $10::text[])
        as e(operation_id, generation, submission, attempt, token, fenced, class, code, detail, evidence)
