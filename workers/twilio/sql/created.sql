-- Invariant: a SID is written once, with the outcome of the creation; what is wanted now says what is owed next.
update chat.conversation set sid = $2, sid_at = clock_timestamp(), attention = null where id = $1 and (sid is null or sid = $2) returning state
