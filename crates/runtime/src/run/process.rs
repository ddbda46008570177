//! What every worker's `main` begins with, before it builds its clients.

use crate::observe::{Telemetry, init_telemetry, install_metrics};
use crate::{Error, Workload, WorkloadConfig};

impl Workload {
    /// A workload that has its process to itself: sets up the log, spans (as service `backline-<name>`), metrics, the
    /// crash points of drills and the one TLS provider of the process. Clients are built after it. An application that
    /// has set these up for itself uses [`Workload::new`].
    ///
    /// # Errors
    /// A setting that cannot work, or something that is set up already.
    pub fn process(name: &str, config: WorkloadConfig) -> Result<Self, Error> {
        backline_crash_point::init_from_env()
            .map_err(|reason| Error::Setting { name: "BACKLINE_CRASH_PLAN", reason })?;
        let telemetry: Telemetry =
            init_telemetry(&format!("backline-{name}"), &config.log, config.otlp_endpoint.as_deref())?;
        // Whoever installed another one before has decided; clients name a missing one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self::new(name, config).metrics(install_metrics()?).telemetry(telemetry))
    }
}
