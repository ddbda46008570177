//! A proxy before PostgreSQL that loses what a network loses: connections, packets, and the reply to a COMMIT.

use anyhow::Context;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

#[derive(Default)]
struct Faults {
    /// Text of a statement; the next COMMIT of a transaction that ran it loses its reply.
    swallow: Mutex<Option<String>>,
    swallowed: AtomicUsize,
    refusing: AtomicBool,
    cut: Notify,
    /// Connections that shall be silent without ending: those whose session ran this text.
    mute: watch::Sender<Option<String>>,
    muted: AtomicUsize,
    server: AtomicU16,
}

/// A running proxy.
pub struct PgProxy {
    address: SocketAddr,
    faults: Arc<Faults>,
}

impl PgProxy {
    /// Starts a proxy before the server at `port` on a thread of its own.
    ///
    /// # Errors
    /// No free port.
    pub fn start(port: u16) -> anyhow::Result<PgProxy> {
        let faults = Arc::new(Faults { server: AtomicU16::new(port), ..Faults::default() });
        let state = Arc::clone(&faults);
        Ok(PgProxy { address: serve(async move |listener| accept(listener, state).await)?, faults })
    }

    /// TCP port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The next COMMIT of a transaction that runs a statement containing `text` reaches the server; its reply does
    /// not reach the client, whose connection ends.
    pub fn swallow_commit_of(&self, text: &str) {
        *self.faults.swallow.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
    }

    /// How many replies were swallowed.
    #[must_use]
    pub fn swallowed(&self) -> usize {
        self.faults.swallowed.load(Ordering::Acquire)
    }

    /// Cuts every connection and refuses new ones until [`PgProxy::heal`].
    pub fn unplug(&self) {
        self.faults.refusing.store(true, Ordering::Release);
        self.faults.cut.notify_waiters();
    }

    /// Connections whose session ran a statement containing `text` carry nothing any more, without ending: a half-open
    /// socket. New connections work.
    pub fn mute_sessions_that_ran(&self, text: &str) {
        self.faults.mute.send_replace(Some(text.to_owned()));
    }

    /// How many connections were silenced.
    #[must_use]
    pub fn muted(&self) -> usize {
        self.faults.muted.load(Ordering::Acquire)
    }

    /// Cuts every connection and leads new ones to the server at `port`: where a failover's address points afterwards.
    pub fn lead_to(&self, port: u16) {
        self.faults.server.store(port, Ordering::Release);
        self.faults.cut.notify_waiters();
    }

    /// New connections work; silenced ones stay silent, as a lost peer does.
    pub fn heal(&self) {
        self.faults.refusing.store(false, Ordering::Release);
        self.faults.mute.send_replace(None);
    }
}

/// Runs `accept` with a listener on a free port, on a thread of its own; its address.
pub(crate) fn serve<F>(accept: F) -> anyhow::Result<SocketAddr>
where
    F: AsyncFnOnce(TcpListener) -> std::io::Result<()> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let run = || -> std::io::Result<()> {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let _ = sender.send(listener.local_addr());
                accept(listener).await
            })
        };
        if let Err(error) = run() {
            let _ = sender.send(Err(error));
        }
    });
    Ok(receiver.recv().context("the proxy did not start")??)
}

async fn accept(listener: TcpListener, faults: Arc<Faults>) -> std::io::Result<()> {
    loop {
        let (client, _) = listener.accept().await?;
        if faults.refusing.load(Ordering::Acquire) {
            continue;
        }
        let faults = Arc::clone(&faults);
        tokio::spawn(async move {
            let cut = faults.cut.notified();
            tokio::pin!(cut);
            cut.as_mut().enable();
            let Ok(server) = TcpStream::connect(("127.0.0.1", faults.server.load(Ordering::Acquire))).await
            else {
                return;
            };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            // Either side's end ends both.
            tokio::select! {
                _ = carry(client, server, &faults) => {}
                () = cut => {}
            }
        });
    }
}

async fn carry(client: TcpStream, server: TcpStream, faults: &Arc<Faults>) -> std::io::Result<()> {
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    let lost = watch::Sender::new(false);
    let silent = watch::Sender::new(false);
    let back = answers(server_read, client_write, lost.subscribe(), silent.subscribe());
    tokio::select! {
        result = requests(client_read, server_write, faults, &lost, &silent) => result,
        result = back => result,
    }
}

/// Server to client, byte for byte, until a reply is to be lost.
async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    lost: watch::Receiver<bool>,
    silent: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 65_536];
    loop {
        let n = from.read(&mut buffer).await?;
        if n == 0 || *lost.borrow() {
            // The COMMIT was answered: the client hears of the end of its connection only.
            return Ok(());
        }
        if *silent.borrow() {
            continue;
        }
        to.write_all(buffer.get(..n).unwrap_or_default()).await?;
    }
}

/// Client to server, message by message.
async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    faults: &Faults,
    lost: &watch::Sender<bool>,
    silent: &watch::Sender<bool>,
) -> std::io::Result<()> {
    let mut mute = faults.mute.subscribe();
    let mut session = Session::default();
    let mut started = false;
    loop {
        // Interrupted between messages only.
        tokio::select! {
            ready = from.readable() => ready?,
            Ok(()) = mute.changed() => {
                let wanted = mute.borrow_and_update().clone();
                if wanted.is_some_and(|text| session.ran(&text)) {
                    silent.send_replace(true);
                    faults.muted.fetch_add(1, Ordering::AcqRel);
                    // Whatever the client sends is lost too; it ends when the client gives up.
                    let mut sink = vec![0; 4096];
                    while from.read(&mut sink).await? > 0 {}
                    return Ok(());
                }
                continue;
            }
        }
        let message = read_message(&mut from, started).await?;
        // The first message without a type that is no request for encryption starts the session.
        if !started {
            started = message.get(4..8) != Some(&80_877_103_u32.to_be_bytes());
        } else if session.sees(&message, faults) {
            lost.send_replace(true);
            faults.swallowed.fetch_add(1, Ordering::AcqRel);
        }
        to.write_all(&message).await?;
    }
}

/// One message, whole. The first of a session has no type.
pub(crate) async fn read_message(
    from: &mut (impl AsyncRead + Unpin),
    typed: bool,
) -> std::io::Result<Vec<u8>> {
    let head = if typed { 5 } else { 4 };
    let mut message = vec![0; head];
    from.read_exact(&mut message).await?;
    let mut length = [0; 4];
    length.copy_from_slice(message.get(head - 4..).unwrap_or(&[0; 4]));
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(4);
    let mut rest = vec![0; length.saturating_sub(4)];
    from.read_exact(&mut rest).await?;
    message.append(&mut rest);
    Ok(message)
}

/// What one session has said.
#[derive(Default)]
struct Session {
    texts: Vec<String>,
    prepared: Vec<(Vec<u8>, String)>,
    hit: bool,
}

impl Session {
    fn ran(&self, text: &str) -> bool {
        self.texts.iter().any(|earlier| earlier.contains(text))
    }

    /// Whether this message is the COMMIT whose reply is to be lost.
    fn sees(&mut self, message: &[u8], faults: &Faults) -> bool {
        let mut wanted = faults.swallow.lock().unwrap_or_else(PoisonError::into_inner);
        let body = message.get(5..).unwrap_or_default();
        let mut parts = body.split(|byte| *byte == 0);
        let (first, second) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        match message.first() {
            Some(b'P') => {
                let text = String::from_utf8_lossy(second).into_owned();
                self.texts.push(text.clone());
                self.prepared.push((first.to_vec(), text));
                false
            }
            // Bind: portal, then statement.
            Some(b'B') => {
                if let Some(wanted) = wanted.as_deref() {
                    let found = self.prepared.iter().rev().find(|(name, _)| name == second);
                    self.hit |= found.is_some_and(|(_, text)| text.contains(wanted));
                }
                false
            }
            Some(b'Q') => {
                let text = String::from_utf8_lossy(first).into_owned();
                let ends = text.eq_ignore_ascii_case("commit") || text.eq_ignore_ascii_case("rollback");
                let lose = ends && self.hit && text.eq_ignore_ascii_case("commit") && wanted.is_some();
                self.texts.push(text);
                self.hit &= !ends;
                if lose {
                    *wanted = None;
                }
                lose
            }
            _ => false,
        }
    }
}
