//! A pooler in transaction mode before PostgreSQL, as PgBouncer is one: every transaction of a client goes to another
//! session than the one before, and start-up parameters that it cannot keep track of are refused.

use crate::proxy::{read_message, serve};
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// What PgBouncer lets in without being told to (<https://www.pgbouncer.org/config.html>, `ignore_startup_parameters`),
/// in lower case.
const KNOWN: [&str; 7] = [
    "user",
    "database",
    "application_name",
    "client_encoding",
    "datestyle",
    "timezone",
    "standard_conforming_strings",
];
/// Instead of a version, in a first message.
const ENCRYPT: [u8; 4] = 80_877_103_u32.to_be_bytes();

/// A running pooler.
pub struct Pooler {
    address: SocketAddr,
}

impl Pooler {
    /// Starts a pooler before the server at `port`, whose sessions need no password, on a thread of its own.
    /// `keeps_statements`: whether a client's prepared statements follow it, as from PgBouncer 1.21 on they may.
    ///
    /// # Errors
    /// No free port.
    pub fn start(port: u16, keeps_statements: bool) -> anyhow::Result<Pooler> {
        let address = serve(async move |listener| {
            loop {
                let (client, _) = listener.accept().await?;
                tokio::spawn(async move {
                    if let Ok(mut session) = Session::open(client, port, keeps_statements).await {
                        // Ends with either side.
                        while session.transaction().await.is_ok() {}
                    }
                });
            }
        })?;
        Ok(Pooler { address })
    }

    /// TCP port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

/// One client and the two sessions of the server that its transactions take turns on.
struct Session {
    client: TcpStream,
    /// Its first message, which opens its sessions at the server's port.
    startup: Vec<u8>,
    port: u16,
    servers: [TcpStream; 2],
    turn: usize,
    keeps_statements: bool,
    /// The client's prepared statements by name, and which of them each server has.
    prepared: HashMap<Vec<u8>, Vec<u8>>,
    has: [HashSet<Vec<u8>>; 2],
}

impl Session {
    async fn open(mut client: TcpStream, port: u16, keeps_statements: bool) -> std::io::Result<Session> {
        client.set_nodelay(true)?;
        let mut startup = read_message(&mut client, false).await?;
        if startup.get(4..8) == Some(&ENCRYPT) {
            client.write_all(b"N").await?;
            startup = read_message(&mut client, false).await?;
        }
        let words: Vec<String> = startup
            .get(8..)
            .unwrap_or_default()
            .split(|byte| *byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        // Pairs of name and value; an empty name ends them.
        let names = words.iter().step_by(2).take_while(|name| !name.is_empty());
        if let Some(name) = names.clone().find(|name| !KNOWN.contains(&name.to_lowercase().as_str())) {
            let text = format!("unsupported startup parameter: {name}");
            let fields = format!("SFATAL\0VFATAL\0C08P01\0M{text}\0\0");
            let length = u32::try_from(fields.len() + 4).unwrap_or(4);
            client.write_all(&[b"E", &length.to_be_bytes()[..], fields.as_bytes()].concat()).await?;
            return Err(ErrorKind::Unsupported.into());
        }
        let (first, greeting) = connect(port, &startup).await?;
        let (second, _) = connect(port, &startup).await?;
        client.write_all(&greeting).await?;
        let (prepared, has) = (HashMap::new(), <[_; 2]>::default());
        let servers = [first, second];
        Ok(Session { client, startup, port, servers, turn: 0, keeps_statements, prepared, has })
    }

    /// What the client says up to the end of its transaction, and what it hears.
    async fn transaction(&mut self) -> std::io::Result<()> {
        loop {
            let message = read_message(&mut self.client, true).await?;
            if self.keeps_statements {
                self.follow(&message).await?;
            }
            let server = &mut self.servers[self.turn];
            server.write_all(&message).await?;
            // A query or the end of a batch: the server answers, and says whether a transaction is open.
            if !matches!(message.first(), Some(b'Q' | b'S')) {
                continue;
            }
            loop {
                let answer = read_message(server, true).await?;
                self.client.write_all(&answer).await?;
                match (answer.first(), answer.get(5)) {
                    (Some(b'Z'), Some(b'I')) => return self.pass_on().await,
                    (Some(b'Z'), _) => break,
                    _ => {}
                }
            }
        }
    }

    /// The next transaction is another session's. One that has statements of this client must not come again, or every
    /// second transaction would find them.
    async fn pass_on(&mut self) -> std::io::Result<()> {
        if !self.keeps_statements {
            self.servers[self.turn] = connect(self.port, &self.startup).await?.0;
        }
        self.turn = 1 - self.turn;
        Ok(())
    }

    /// Prepares on the current server what the message is about to use and only the other one has.
    async fn follow(&mut self, message: &[u8]) -> std::io::Result<()> {
        let body = message.get(5..).unwrap_or_default();
        let mut words = body.split(|byte| *byte == 0);
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let name = match message.first() {
            Some(b'P') if !first.is_empty() => {
                self.prepared.insert(first.to_vec(), message.to_vec());
                self.has[self.turn].insert(first.to_vec());
                return Ok(());
            }
            // Bind names its portal first; describe says what it describes.
            Some(b'B') => second,
            Some(b'D') => first.strip_prefix(b"S").unwrap_or_default(),
            _ => return Ok(()),
        };
        if let Some(parse) = self.prepared.get(name)
            && self.has[self.turn].insert(name.to_vec())
        {
            let server = &mut self.servers[self.turn];
            server.write_all(parse).await?;
            server.write_all(&[b'H', 0, 0, 0, 4]).await?;
            // The client has heard of its own preparation already.
            read_message(server, true).await?;
        }
        Ok(())
    }
}

/// A session of the server, and what it said at its start.
async fn connect(port: u16, startup: &[u8]) -> std::io::Result<(TcpStream, Vec<u8>)> {
    let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
    server.set_nodelay(true)?;
    server.write_all(startup).await?;
    let mut greeting = Vec::new();
    loop {
        let answer = read_message(&mut server, true).await?;
        greeting.extend_from_slice(&answer);
        if answer.first() == Some(&b'Z') {
            return Ok((server, greeting));
        }
    }
}
