//! The stand-in's state and how it comes back from the journal.

use bytes::Bytes;

use super::expand;
use super::form::Params;
use super::idempotency::Keys;
use super::world::{Change, World};
use crate::config::Config;
use crate::control::Action;
use crate::faults::Becomes;
use crate::journal::Line;

/// Objects and keys.
#[derive(Debug)]
pub(crate) struct Stripe {
    pub(crate) world: World,
    pub(crate) keys: Keys,
    /// Accepted secret keys; empty accepts all that look like one.
    pub(crate) api_keys: Vec<String>,
    /// Default invisibility of new objects.
    pub(crate) lookup_lag_ms: i64,
}

impl Stripe {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            world: World::new(config),
            keys: Keys::new(crate::duration::millis(config.key_window)),
            api_keys: config.api_keys.iter().filter(|key| !key.starts_with("SK")).cloned().collect(),
            lookup_lag_ms: crate::duration::millis(config.lookup_lag),
        }
    }

    /// The object of a change as the API shows it, with expansions.
    pub(crate) fn show(&self, change: &Change, params: &Params, account: Option<&str>, now_ms: i64) -> Bytes {
        let mut body = self.world.render(change, now_ms);
        expand::expand(&self.world, &mut body, &params.expand(), account, now_ms);
        Bytes::from(body.to_string())
    }

    /// Repeats what a journal line did.
    ///
    /// # Errors
    /// A line with a change that this build does not know.
    pub(crate) fn restore(&mut self, line: &Line) -> Result<(), serde_json::Error> {
        if line.method == "CONTROL" {
            if let Some(action) = &line.change {
                self.act(&serde_json::from_value(action.clone())?);
            }
            return Ok(());
        }
        if line.method == "GET" {
            if let (Some(200), Some(id)) = (line.replied.as_u64(), line.path.rsplit('/').next()) {
                self.world.polled(id);
            }
            return Ok(());
        }
        let change: Option<Change> = line.change.clone().map(serde_json::from_value).transpose()?;
        if let Some(change) = &change {
            self.world.apply(change.clone());
        }
        if let (Some(key), Some(stored), Some(hash)) = (&line.key, &line.stored, &line.params_hash) {
            let body = match (&stored.body, &change) {
                (Some(body), _) => Bytes::from(body.clone()),
                (None, Some(change)) => {
                    self.show(change, &Params::default(), line.account.as_deref(), stored.at_ms)
                }
                (None, None) => Bytes::new(),
            };
            let scope = line.account.as_deref();
            self.keys.begin(scope, key, hash, stored.at_ms);
            self.keys.finish(scope, key, stored.status, body);
        }
        Ok(())
    }

    /// Carries out a control action; the answer is how many things it touched.
    pub(crate) fn act(&mut self, action: &Action) -> usize {
        match action {
            Action::ClockForward { by } => self.world.clock.shift(crate::duration::millis(*by)),
            Action::ClockBack { by } => self.world.clock.shift(-crate::duration::millis(*by)),
            Action::PruneKeys => return self.keys.prune_all(),
            Action::Account { id, state } => {
                self.world.accounts.insert(id.clone(), *state);
            }
            Action::Funds { account, currency, amount } => {
                self.world.move_funds(account.as_deref(), currency, *amount);
            }
            Action::Become { id, status, code, at_ms } => {
                let at_ms = at_ms.unwrap_or_else(|| self.world.clock.now_ms());
                let later = Becomes { status: status.clone(), at_ms, code: code.clone() };
                return usize::from(self.world.contradict(id, later));
            }
            Action::Conversation { .. } | Action::Participant { .. } => return 0,
        }
        1
    }
}
