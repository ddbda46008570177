//! Free TCP ports for servers that are told where to listen.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the range from which Linux (32768 up) and macOS (49152 up) take the local ports of outgoing connections: a
/// server that is killed and started again finds its port free, which port 0 of the kernel does not promise.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A TCP port of 127.0.0.1 that was free a moment ago and is not handed out again by this process. Another process may
/// still take it first: whoever binds it must handle an address in use.
///
/// # Errors
/// Every port of the range is taken.
pub fn free_port() -> io::Result<u16> {
    static OFFSET: AtomicU16 = AtomicU16::new(0);
    // Test processes that start together begin at different places.
    let base = u16::try_from(std::process::id().wrapping_mul(97) % u32::from(COUNT)).unwrap_or(0);
    for _ in 0..COUNT {
        let offset = OFFSET.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + (base + offset) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, format!("no free port from {FIRST} on")))
}

#[cfg(test)]
mod tests {
    use super::free_port;

    #[test]
    fn a_port_is_handed_out_once() -> std::io::Result<()> {
        assert_ne!(free_port()?, free_port()?);
        Ok(())
    }
}
