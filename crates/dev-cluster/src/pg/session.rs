//! A few statements to a private cluster without a client library: PostgreSQL's simple query protocol, trust only.
//! Protocol: <https://www.postgresql.org/docs/current/protocol-message-formats.html>.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// Version 3.0 of the protocol.
const PROTOCOL: i32 = 196_608;
/// A local server that is silent for this long is stuck; migrations and base backups are much shorter.
const SILENCE: Duration = Duration::from_secs(120);

/// One connection to a cluster of this crate, as its superuser.
#[derive(Debug)]
pub struct Session {
    stream: BufReader<TcpStream>,
}

impl Session {
    /// Connects to `database` on this machine.
    ///
    /// # Errors
    /// No server, no such database, or a server that asks for a password.
    pub fn connect(port: u16, database: &str) -> io::Result<Session> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE))?;
        let mut session = Session { stream: BufReader::new(stream) };
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        for text in ["user", super::USER, "database", database, "application_name", "dev-cluster"] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        body.push(0);
        session.send(None, &body)?;
        session.rows()?;
        Ok(session)
    }

    /// Runs one or more statements, separated by semicolons and in one transaction unless they say otherwise, and
    /// returns all rows as text.
    ///
    /// # Errors
    /// The server's message with its SQLSTATE, or a broken connection.
    pub fn run(&mut self, sql: &str) -> io::Result<Vec<Vec<Option<String>>>> {
        let mut body = sql.as_bytes().to_vec();
        body.push(0);
        self.send(Some(b'Q'), &body)?;
        self.rows()
    }

    /// Runs `sql` and returns the first column of the first row, empty when there is none or it is null.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn value(&mut self, sql: &str) -> io::Result<String> {
        let first = self.run(sql)?.into_iter().next().and_then(|row| row.into_iter().next());
        Ok(first.flatten().unwrap_or_default())
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> io::Result<()> {
        let length =
            i32::try_from(body.len() + 4).map_err(|_| io::Error::other("the statement is too long"))?;
        let mut frame: Vec<u8> = kind.into_iter().collect();
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(body);
        self.stream.get_mut().write_all(&frame)
    }

    /// Reads until the server is ready for the next statement.
    fn rows(&mut self) -> io::Result<Vec<Vec<Option<String>>>> {
        let mut rows = Vec::new();
        let mut failure = None;
        loop {
            let (kind, body) = self.receive()?;
            match kind {
                b'R' if body != [0, 0, 0, 0] => {
                    return Err(io::Error::other("the server asks for a password"));
                }
                b'D' => rows.push(row(&body).ok_or_else(garbled)?),
                b'E' => failure = Some(io::Error::other(error_text(&body))),
                b'Z' => return failure.map_or(Ok(rows), Err),
                _ => {}
            }
            // A refusal before the session exists is followed by the end of the connection, not by readiness.
            if let Some(refused) = failure.take_if(|error| error.to_string().starts_with("FATAL")) {
                return Err(refused);
            }
        }
    }

    fn receive(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u32::from_be_bytes(length).checked_sub(4).ok_or_else(garbled)?;
        let mut body = Vec::new();
        let read = self.stream.by_ref().take(u64::from(length)).read_to_end(&mut body)?;
        if u32::try_from(read) == Ok(length) { Ok((kind, body)) } else { Err(garbled()) }
    }
}

fn garbled() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the server's answer is cut or not PostgreSQL's")
}

/// A row: a count of columns, then each value's length (-1 is null) and bytes.
fn row(body: &[u8]) -> Option<Vec<Option<String>>> {
    let (count, mut rest) = body.split_at_checked(2)?;
    let mut values = Vec::new();
    for _ in 0..u16::from_be_bytes(count.try_into().ok()?) {
        let (length, after) = rest.split_at_checked(4)?;
        rest = after;
        let Ok(length) = usize::try_from(i32::from_be_bytes(length.try_into().ok()?)) else {
            values.push(None);
            continue;
        };
        let (value, after) = rest.split_at_checked(length)?;
        rest = after;
        values.push(Some(String::from_utf8_lossy(value).into_owned()));
    }
    Some(values)
}

/// "SEVERITY SQLSTATE message" of an error answer, whose fields are a letter and text each.
fn error_text(body: &[u8]) -> String {
    let field = |wanted: u8| {
        let found = body.split(|byte| *byte == 0).find(|field| field.first() == Some(&wanted));
        found
            .map(|field| String::from_utf8_lossy(field.get(1..).unwrap_or_default()).into_owned())
            .unwrap_or_default()
    };
    let position =
        Some(field(b'P')).filter(|text| !text.is_empty()).map(|text| format!(" at character {text}"));
    format!("{} {} {}{}", field(b'V'), field(b'C'), field(b'M'), position.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::row;

    #[test]
    fn rows_with_nulls_are_read_and_cut_rows_refused() {
        let body = [&[0, 2][..], &[0, 0, 0, 2], b"ab", &[255, 255, 255, 255]].concat();
        assert_eq!(row(&body), Some(vec![Some("ab".to_owned()), None]));
        assert_eq!(row(&body[..7]), None);
    }
}
