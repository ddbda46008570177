//! What an emulator is started with.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Settings of one emulator. `Default` is an in-memory emulator on a free loopback port.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Directory of the journal. `None` keeps everything in memory.
    pub data_dir: Option<PathBuf>,
    /// Accepted messages kept for `GET /log`; older ones are dropped and counted. 0 keeps none.
    pub log_limit: usize,
    /// Shortest acknowledgement deadline a client may ask for. The service's floor is 10 s; tests lower it.
    pub min_ack_deadline: Duration,
    /// Ceiling put on every acknowledgement deadline, whatever clients ask for. Google's clients never ask
    /// for less than 10 s, so expiry tests set this.
    pub ack_deadline_cap: Option<Duration>,
    /// Ceiling put on the delay of every retry policy, for tests that compress all timers in proportion.
    pub retry_backoff_cap: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            data_dir: None,
            // About 500 bytes each: half a gigabyte at worst.
            log_limit: 1_000_000,
            min_ack_deadline: Duration::from_secs(10),
            ack_deadline_cap: None,
            retry_backoff_cap: None,
        }
    }
}

impl Config {
    /// The deadline really used for one a client asked for.
    pub(crate) fn effective_deadline(&self, asked: Duration) -> Duration {
        self.ack_deadline_cap.map_or(asked, |cap| asked.min(cap))
    }
}
