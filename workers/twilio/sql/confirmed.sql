-- Invariant: a removal is confirmed by an attempt that saw them absent or took them out, never by a missing row.
update chat.removal set confirmed_at = clock_timestamp()
 where conversation = $1 and who in (select jsonb_array_elements($2)) and confirmed_at is null
