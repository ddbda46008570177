-- Invariant: when an account's pause is lifted, what had met the refusal is due at once and not after the longest back-off.
select backline.wake_blocked($1) as "woken!"
