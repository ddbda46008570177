//! A receiver of webhooks: lives in the test, outlives every process under test, and loses replies as told.
//!
//! Plain sockets, because it has to do what no HTTP server does: take a request and hang up.

use anyhow::{Context, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use ring::hmac;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What the receiver does with one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// Takes it and says 204.
    Take,
    /// Takes it, and the reply is lost.
    TakeAndHangUp,
    /// Takes it, and says nothing until its caller has gone.
    TakeAndWait,
    /// Takes it and says this status all the same.
    TakeAndSay(u16),
    /// Is gone before it took anything.
    HangUp,
    /// Takes nothing and says this status; with 429, to come back in a second.
    Say(u16),
}

impl Receipt {
    /// Whether the receiver has the event now, whatever it says.
    #[must_use]
    pub fn takes(self) -> bool {
        !matches!(self, Receipt::HangUp | Receipt::Say(_))
    }
}

/// One call as it came in.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// `webhook-id`.
    pub id: String,
    /// `webhook-timestamp`, in seconds since 1970.
    pub timestamp: u64,
    /// Body, byte for byte.
    pub body: String,
    /// Whether one of the signatures is right.
    pub genuine: bool,
    /// What was done with it.
    pub receipt: Receipt,
}

type Answering = Box<dyn FnMut(&str, usize) -> Receipt + Send>;

struct State {
    secret: hmac::Key,
    delivered: Vec<Delivered>,
    times: HashMap<String, usize>,
    answer: Answering,
}

/// A running receiver.
pub struct Receiver {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Receiver {
    /// Starts one that takes everything; `secret` is `whsec_` and base64, as the sender has it.
    ///
    /// # Errors
    /// The secret is not base64, or there is no free port.
    pub fn start(secret: &str) -> anyhow::Result<Receiver> {
        let secret = STANDARD.decode(secret.trim_start_matches("whsec_"))?;
        let state = State {
            secret: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            delivered: Vec::new(),
            times: HashMap::new(),
            answer: Box::new(|_, _| Receipt::Take),
        };
        let state = Arc::new(Mutex::new(state));
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::clone(&state);
        // Ends with the test's process, as its threads do.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &state));
            }
        });
        Ok(Receiver { address, state })
    }

    /// Where the sender finds it. The path is the receiver's own and has no slash at its end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/hooks/orders", self.address)
    }

    /// Decides every later delivery: `(body, which delivery of its id, from 1)`.
    pub fn answer(&self, answer: impl FnMut(&str, usize) -> Receipt + Send + 'static) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).answer = Box::new(answer);
    }

    /// Everything that came in, in order.
    #[must_use]
    pub fn delivered(&self) -> Vec<Delivered> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).delivered.clone()
    }
}

/// One request of one connection; a caller that was killed on the way leaves nothing.
fn serve(stream: TcpStream, state: &Mutex<State>) -> anyhow::Result<()> {
    // Longer than any request of the sender: only a test that hangs meets it.
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line)?;
    if line.trim_end() != "POST /hooks/orders HTTP/1.1" {
        return say(stream.get_mut(), 404);
    }
    let mut headers = HashMap::new();
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            bail!("cut inside its head");
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()).is_some() {
            return say(stream.get_mut(), 400);
        }
    }
    let header = |name: &str| headers.get(name).map(String::as_str).with_context(|| name.to_owned());
    if header("content-type")? != "application/json" {
        return say(stream.get_mut(), 415);
    }
    let mut body = vec![0; header("content-length")?.parse()?];
    stream.read_exact(&mut body)?;
    let (id, body) = (header("webhook-id")?.to_owned(), String::from_utf8(body)?);
    let (timestamp, signature) = (header("webhook-timestamp")?, header("webhook-signature")?);
    let receipt = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let signed = format!("{id}.{timestamp}.{body}");
        let genuine = signature.split(' ').filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok());
        let genuine =
            genuine.into_iter().any(|tag| hmac::verify(&state.secret, signed.as_bytes(), &tag).is_ok());
        let times = state.times.entry(id.clone()).or_default();
        *times += 1;
        let times = *times;
        let receipt = (state.answer)(&body, times);
        let timestamp = timestamp.parse()?;
        state.delivered.push(Delivered { id, timestamp, body, genuine, receipt });
        receipt
    };
    match receipt {
        Receipt::HangUp | Receipt::TakeAndHangUp => Ok(()),
        Receipt::TakeAndWait => Ok(stream.read_to_end(&mut Vec::new()).map(drop)?),
        Receipt::Take => say(stream.get_mut(), 204),
        Receipt::TakeAndSay(status) | Receipt::Say(status) => say(stream.get_mut(), status),
    }
}

fn say(stream: &mut TcpStream, status: u16) -> anyhow::Result<()> {
    let wait = if status == 429 { "Retry-After: 1\r\n" } else { "" };
    Ok(write!(stream, "HTTP/1.1 {status} As told\r\n{wait}Content-Length: 0\r\nConnection: close\r\n\r\n")?)
}
