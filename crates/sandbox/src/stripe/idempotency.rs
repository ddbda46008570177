//! Idempotency keys as Stripe documents them (<https://docs.stripe.com/api/idempotent_requests>).
//!
//! A key is stored once execution of the endpoint began, with whatever status came out of it. It is
//! scoped by the account header: secret keys may rotate between attempts without changing the scope.

use std::collections::HashMap;

use bytes::Bytes;

/// What a call with a key meets.
#[derive(Debug)]
pub(crate) enum Begin {
    /// Nobody used the key within the window; it is now in flight.
    Fresh,
    /// The first call has ended.
    Replay { status: u16, body: Bytes },
    /// The first call is still executing.
    InUse,
    /// The first call had other parameters.
    Mismatch,
}

#[derive(Debug)]
struct Entry {
    params_hash: String,
    at_ms: i64,
    /// `None` while in flight.
    answer: Option<(u16, Bytes)>,
}

/// All keys, by account scope.
#[derive(Debug)]
pub(crate) struct Keys {
    window_ms: i64,
    scopes: HashMap<Option<String>, HashMap<String, Entry>>,
}

impl Keys {
    pub(crate) fn new(window_ms: i64) -> Self {
        Self { window_ms, scopes: HashMap::new() }
    }

    /// Looks the key up and, if it is unused or older than the window, takes it.
    pub(crate) fn begin(&mut self, scope: Option<&str>, key: &str, params_hash: &str, now_ms: i64) -> Begin {
        let keys = self.scopes.entry(scope.map(str::to_owned)).or_default();
        if let Some(entry) = keys.get(key) {
            let pruned = entry.answer.is_some() && now_ms - entry.at_ms >= self.window_ms;
            if !pruned {
                return match &entry.answer {
                    _ if entry.params_hash != params_hash => Begin::Mismatch,
                    None => Begin::InUse,
                    Some((status, body)) => Begin::Replay { status: *status, body: body.clone() },
                };
            }
        }
        let entry = Entry { params_hash: params_hash.to_owned(), at_ms: now_ms, answer: None };
        keys.insert(key.to_owned(), entry);
        Begin::Fresh
    }

    /// Stores the answer of the call that took the key.
    pub(crate) fn finish(&mut self, scope: Option<&str>, key: &str, status: u16, body: Bytes) {
        if let Some(entry) = self.scopes.get_mut(&scope.map(str::to_owned)).and_then(|keys| keys.get_mut(key))
        {
            entry.answer = Some((status, body));
        }
    }

    /// Forgets every finished key, as Stripe may once they are old enough.
    pub(crate) fn prune_all(&mut self) -> usize {
        let mut pruned = 0;
        for keys in self.scopes.values_mut() {
            let before = keys.len();
            keys.retain(|_, entry| entry.answer.is_none());
            pruned += before - keys.len();
        }
        pruned
    }
}
