//! A provider stand-in that keeps what it was told, and the handler that tells it: desired states over a socket.

use backline_failure::{Call, Failure, Mode};
use backline_runtime::{Conclusion, Error, KindSpec, Operation, Read, Reconcile, Record, Step};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// How long the stand-in takes to answer, as a Web service across a continent does.
pub(super) const ANSWER: Duration = Duration::from_millis(100);

/// What the stand-in was told, by its own count.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// Requests it has received.
    pub(super) calls: i64,
    /// The version it shows of each state.
    pub(super) shown: BTreeMap<i64, i64>,
    /// What must never happen, and did.
    pub(super) wrong: Option<String>,
    /// States whose call has not been answered.
    pub(super) under_way: BTreeSet<i64>,
}

impl Told {
    fn begin(&mut self, state: i64) {
        self.calls += 1;
        if !self.under_way.insert(state) {
            self.wrong = Some(format!("two calls for state {state} at once"));
        }
    }

    fn end(&mut self, state: i64, version: i64) {
        self.under_way.remove(&state);
        let before = self.shown.insert(state, version).unwrap_or(0);
        if version < before {
            self.wrong = Some(format!("state {state} went back from version {before} to {version}"));
        }
    }
}

/// A listening stand-in; it ends when dropped.
pub(super) struct Provider {
    /// host:port.
    pub(super) host: String,
    told: Arc<Mutex<Told>>,
    accepting: JoinHandle<()>,
}

impl Provider {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let host = listener.local_addr()?.to_string();
        let told = Arc::new(Mutex::new(Told::default()));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&told)));
        Ok(Self { host, told, accepting })
    }

    pub(super) fn told(&self) -> Told {
        lock(&self.told).clone()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, told: Arc<Mutex<Told>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // A caller that goes away in the middle is judged by what it did not bring about.
        connections.spawn(answer(stream, Arc::clone(&told)));
    }
}

/// `state version` a line; the version is shown when the answer leaves.
async fn answer(mut stream: TcpStream, told: Arc<Mutex<Told>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (reader, mut writer) = stream.split();
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await? {
        let Some((state, version)) = line.split_once(' ') else { break };
        let (Ok(state), Ok(version)) = (state.parse(), version.parse()) else { break };
        lock(&told).begin(state);
        tokio::time::sleep(ANSWER).await;
        lock(&told).end(state, version);
        writer.write_all(b"ok\n").await?;
    }
    Ok(())
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Handler of `bench.follow`: rereads one desired state, makes the provider show it in one call, and records a row.
pub(super) struct Follow {
    provider: String,
    /// Connections that nobody uses now.
    idle: Mutex<Vec<BufReader<TcpStream>>>,
}

/// Input: which state.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    /// Row of `bench.desired`.
    pub(super) id: i64,
}

/// What the provider shows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Shown {
    version: i64,
}

impl Follow {
    pub(super) fn new(provider: String) -> Self {
        Self { provider, idle: Mutex::default() }
    }

    async fn connect(&self) -> std::io::Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(&self.provider).await?;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    }
}

impl Reconcile for Follow {
    const KIND: &'static str = "bench.follow";
    const SERIAL_KEY: Option<fn(&State) -> String> = Some(|state| format!("bench:{}", state.id));
    type Input = State;
    type Desired = i64;
    type Output = Shown;

    fn spec(&self) -> KindSpec {
        KindSpec { keep_input: false, ..KindSpec::new(Mode::Reconcile, "bench:none") }
    }

    async fn read(
        &self,
        tx: &mut PgConnection,
        _: &Operation,
        state: &State,
    ) -> Result<Read<i64>, sqlx::Error> {
        let version = sqlx::query_scalar("select version from bench.desired where id = $1");
        Ok(Read::Desired(version.bind(state.id).fetch_one(tx).await?))
    }

    async fn converge(&self, call: &Call, state: &State, version: &i64) -> Result<Step<Shown>, Failure> {
        let _permit = call.admit().await?;
        let idle = lock(&self.idle).pop();
        let mut stream = match idle {
            Some(stream) => stream,
            None => self.connect().await.map_err(|_| Failure::transient("bench.unreachable"))?,
        };
        if call.deadline.passed() {
            return Err(Failure::transient("bench.too_late"));
        }
        call.mark_may_have_left();
        let mut reply = String::new();
        let exchange = async {
            stream.write_all(format!("{} {version}\n", state.id).as_bytes()).await?;
            stream.read_line(&mut reply).await
        };
        match tokio::time::timeout(call.timeout, exchange).await {
            Ok(Ok(_)) if reply == "ok\n" => {}
            _ => return Err(Failure::unknown("bench.no_answer")),
        }
        lock(&self.idle).push(stream);
        Ok(Step::Done(Shown { version: *version }))
    }

    /// A row, as handlers of this mode keep what the provider was brought to.
    async fn record(
        &self,
        record: &mut Record<'_>,
        _: &State,
        _: Conclusion<'_, Shown>,
    ) -> Result<(), Error> {
        let id = record.operation().id;
        let sql = "insert into bench.effect (operation_id) values ($1) on conflict (operation_id) do update set at = excluded.at";
        sqlx::query(sql).bind(id).execute(record.connection()).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Told;

    #[test]
    fn overlaps_and_steps_back_are_seen() {
        let mut told = Told::default();
        told.begin(1);
        told.begin(2);
        told.end(1, 5);
        told.end(2, 1);
        told.begin(1);
        told.end(1, 7);
        assert_eq!((told.calls, told.shown.get(&1), told.wrong.as_deref()), (3, Some(&7), None));

        let mut back = told.clone();
        back.begin(1);
        back.end(1, 6);
        assert!(back.wrong.is_some_and(|wrong| wrong.contains("from version 7 to 6")));
        told.begin(1);
        told.begin(1);
        assert!(told.wrong.is_some_and(|wrong| wrong.contains("at once")));
    }
}
