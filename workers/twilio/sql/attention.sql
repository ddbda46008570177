-- Invariant: what only a person can decide, and what the provider refused for good, is shown where a person looks, with its stable code.
update chat.conversation set attention = $2 where id = $1
