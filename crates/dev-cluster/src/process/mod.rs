//! Our own binaries as child processes: started, paused, killed and read by their log.

mod launch;
mod port;
mod running;

pub use launch::Launch;
pub use port::free_port;
pub use running::Process;
