//! One HTTP request to a process of the stack: its health, faults, journal or resources.

use anyhow::{Context, bail};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A local page that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends `body` as JSON (`Value::Null` sends none) and returns status and body of the answer.
///
/// # Errors
/// Nobody listens, or the answer is not HTTP.
pub fn call(address: SocketAddr, method: &str, path: &str, body: &Value) -> anyhow::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    // Version 1.0 without keep-alive: the answer is neither chunked nor followed by anything.
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer is not HTTP")?;
    let status =
        head.split(' ').nth(1).and_then(|code| code.parse().ok()).context("the answer has no status")?;
    Ok((status, body.to_owned()))
}

/// As [`call`], for answers that must succeed.
///
/// # Errors
/// As [`call`], and a status outside 200 to 299, with the answer's words.
pub fn must(address: SocketAddr, method: &str, path: &str, body: &Value) -> anyhow::Result<String> {
    match call(address, method, path, body)? {
        (200..=299, text) => Ok(text),
        (status, text) => bail!("{method} {path}: {status} {text}"),
    }
}
