//! What a test that embeds the sandbox may do without HTTP.

use serde_json::Value;

use crate::control::Action;
use crate::faults::FaultFile;
use crate::serve::Sandbox;

impl Sandbox {
    /// Arms rules after the present ones, and returns their ids. A limiter replaces the present one.
    pub fn add_faults(&self, file: FaultFile) -> Vec<u64> {
        self.app().lock().faults.add(file)
    }

    /// Removes every rule and the limiter.
    pub fn clear_faults(&self) {
        self.app().lock().faults.clear(None);
    }

    /// How often each armed rule fired, in the order of arming. A drill whose rule never fired proves nothing.
    pub fn fired(&self) -> Vec<u64> {
        self.app().lock().faults.fired()
    }

    /// Same as `POST /control`.
    pub fn control(&self, action: Action) {
        self.app().lock().control(action);
    }

    /// Same as `GET /twilio`.
    pub fn twilio(&self) -> Value {
        self.app().lock().twilio.report()
    }

    /// Same as `GET /ledger`.
    pub fn ledger(&self) -> Value {
        self.app().lock().ledger_report(None)
    }
}
