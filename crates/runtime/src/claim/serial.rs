//! The serial keys that kinds derive from their inputs, so that no producer has to know them.

use crate::claim::{Request, stored_key};
use crate::finish::Handlers;
use std::fmt;
use std::sync::Arc;

/// Applied wherever requests become operations.
#[derive(Clone)]
pub(crate) struct SerialKeys(Arc<Handlers>);

impl SerialKeys {
    pub(crate) fn new(handlers: Arc<Handlers>) -> Self {
        Self(handlers)
    }

    /// Every kind of the workload.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.0.keys().map(|kind| (*kind).to_owned()).collect()
    }

    /// Gives each request the key of its kind.
    pub(crate) fn apply(&self, requests: &mut [Request]) {
        requests.iter_mut().for_each(|request| self.derive(request));
    }

    /// A producer's other key would let operations overlap that must not, so the
    /// kind's stands; an input that cannot be read keeps what it came with, and fails when it is attempted.
    fn derive(&self, request: &mut Request) {
        let Some(handler) = self.0.get(request.kind.as_str()) else { return };
        let Some(key) = handler.serial_key(&request.input) else { return };
        let key = Some(stored_key(&key));
        if request.serial_key.is_some() && request.serial_key != key {
            metrics::counter!("backline_serial_keys_replaced_total", "kind" => handler.kind()).increment(1);
        }
        request.serial_key = key;
    }
}

impl fmt::Debug for SerialKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SerialKeys")
    }
}
