//! The provider of the scripted worker: lives in the test, outlives every process under test, and lies as told.

use anyhow::Context;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use uuid::Uuid;

/// What the provider does with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Applies it, or replays it where the key is known, and says so.
    Apply,
    /// Applies it; the caller gets an answer that tells nothing.
    Lost,
    /// Does nothing; the caller gets an answer that tells nothing.
    LostBefore,
    /// Waits for [`Effects::release`], then applies it, whether or not anybody still listens.
    Hold,
    /// Waits for [`Effects::release`], then answers as told.
    HoldThen(Then),
    /// An earlier request with the key is still running: nothing happens.
    InUse,
    /// Too many, with a wait in seconds.
    SlowDown(u64),
    /// The credential is refused.
    Forbidden,
    /// Refused for good.
    Refuse,
}

/// How a held call that is not applied ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// As [`Reply::InUse`].
    InUse,
    /// As [`Reply::SlowDown`], for a second.
    SlowDown,
    /// As [`Reply::Refuse`].
    Refuse,
    /// As [`Reply::LostBefore`].
    LostBefore,
}

/// What a lookup says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// What was applied so far.
    Truth,
    /// Nothing is there, whatever was applied: the view is behind.
    Absent,
    /// It could not look everywhere.
    Undecided,
    /// Something is there that this instruction cannot have made.
    Conflict,
}

/// One call, in order of arrival.
#[derive(Debug, Clone, Deserialize)]
pub struct EffectCall {
    /// Operation id.
    pub operation: Uuid,
    /// Operation kind.
    pub kind: String,
    /// Idempotency key.
    pub key: String,
    /// Generation.
    pub generation: i64,
    /// Submission.
    pub submission: i32,
    /// Attempt.
    pub attempt: i32,
    /// What was asked for.
    pub value: Value,
    /// Credential it was sent with.
    #[serde(skip)]
    pub credential: String,
    /// This very call had its effect.
    #[serde(skip)]
    pub applied: bool,
    /// When it arrived.
    #[serde(skip, default = "Instant::now")]
    pub arrived: Instant,
    /// When it was answered.
    #[serde(skip)]
    pub answered: Option<Instant>,
    /// When its caller had the answer, or had gone: no longer in flight for the caller.
    #[serde(skip)]
    pub left: Option<Instant>,
    /// How long the answer told its caller to wait.
    #[serde(skip)]
    pub wait: Option<Duration>,
}

type Answering = Box<dyn FnMut(&EffectCall, usize) -> Reply + Send>;
type Looking = Box<dyn FnMut(Uuid, usize) -> Look + Send>;

struct Provider {
    calls: Vec<EffectCall>,
    lookups: HashMap<Uuid, usize>,
    by_key: HashMap<String, u64>,
    found: HashMap<Uuid, u64>,
    desired: HashMap<String, i64>,
    answer: Answering,
    look: Looking,
}

struct Shared {
    provider: Mutex<Provider>,
    released: watch::Sender<u64>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Provider> {
        self.provider.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running provider.
pub struct Effects {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Effects {
    /// Starts a well-behaved provider on a thread of its own.
    ///
    /// # Errors
    /// No free port.
    pub fn start() -> anyhow::Result<Effects> {
        let provider = Provider {
            calls: Vec::new(),
            lookups: HashMap::new(),
            by_key: HashMap::new(),
            found: HashMap::new(),
            desired: HashMap::new(),
            answer: Box::new(|_, _| Reply::Apply),
            look: Box::new(|_, _| Look::Truth),
        };
        let shared = Arc::new(Shared { provider: Mutex::new(provider), released: watch::Sender::new(0) });
        let (sender, receiver) = mpsc::channel();
        let state = Arc::clone(&shared);
        // A runtime of its own: the harness blocks the test's while processes start.
        std::thread::spawn(move || serve(state, &sender));
        Ok(Effects { address: receiver.recv().context("the provider did not start")??, shared })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Decides every later call: `(call, which call of its operation, from 1)`.
    pub fn answer(&self, answer: impl FnMut(&EffectCall, usize) -> Reply + Send + 'static) {
        self.shared.lock().answer = Box::new(answer);
    }

    /// Decides every later lookup: `(operation, which lookup of it, from 1)`.
    pub fn look(&self, look: impl FnMut(Uuid, usize) -> Look + Send + 'static) {
        self.shared.lock().look = Box::new(look);
    }

    /// Lets every held call go on.
    pub fn release(&self) {
        self.shared.released.send_modify(|n| *n += 1);
    }

    /// Everything that arrived, in order: the judge of effects.
    #[must_use]
    pub fn calls(&self) -> Vec<EffectCall> {
        self.shared.lock().calls.clone()
    }

    /// The calls of one operation.
    #[must_use]
    pub fn calls_of(&self, operation: Uuid) -> Vec<EffectCall> {
        self.calls().into_iter().filter(|call| call.operation == operation).collect()
    }

    /// Everything that arrived, as [`Effects::remember`] takes it.
    #[must_use]
    pub fn memory(&self) -> Vec<Value> {
        let line = |call: &EffectCall| {
            json!({"operation": call.operation, "kind": call.kind, "key": call.key, "generation": call.generation,
                "submission": call.submission, "attempt": call.attempt, "value": call.value, "applied": call.applied})
        };
        self.shared.lock().calls.iter().map(line).collect()
    }

    /// Puts an earlier provider's calls and effects before its own: keys replay, lookups find.
    ///
    /// # Errors
    /// A line is not of [`Effects::memory`].
    pub fn remember(&self, calls: &[Value]) -> anyhow::Result<()> {
        let mut provider = self.shared.lock();
        for line in calls {
            let mut call: EffectCall = serde_json::from_value(line.clone())?;
            (call.answered, call.left) = (Some(call.arrived), Some(call.arrived));
            provider.calls.push(call);
            let seq = provider.calls.len() - 1;
            if line["applied"] == true {
                provider.apply(seq);
            }
        }
        Ok(())
    }

    /// How often an operation was applied.
    #[must_use]
    pub fn applied(&self, operation: Uuid) -> usize {
        self.calls_of(operation).iter().filter(|call| call.applied).count()
    }

    /// How often an operation was looked up.
    #[must_use]
    pub fn lookups(&self, operation: Uuid) -> usize {
        self.shared.lock().lookups.get(&operation).copied().unwrap_or(0)
    }

    /// The state that a reconcile operation has reached here.
    #[must_use]
    pub fn desired(&self, key: &str) -> Option<i64> {
        self.shared.lock().desired.get(key).copied()
    }
}

fn serve(state: Arc<Shared>, started: &mpsc::Sender<std::io::Result<SocketAddr>>) {
    let run = || -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            let _ = started.send(listener.local_addr());
            let routes = Router::new()
                .route("/effects", post(submit))
                .route("/effects/{operation}", get(find))
                .with_state(state);
            axum::serve(listener, routes).await
        })
    };
    if let Err(error) = run() {
        let _ = started.send(Err(error));
    }
}

async fn submit(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: String) -> Response {
    let Ok(mut call) = serde_json::from_str::<EffectCall>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let credential = headers.get("authorization").and_then(|value| value.to_str().ok());
    call.credential = credential.unwrap_or_default().to_owned();
    let mut released = shared.released.subscribe();
    let seen = *released.borrow_and_update();
    let (seq, reply) = {
        let mut provider = shared.lock();
        let nth = provider.calls.iter().filter(|earlier| earlier.operation == call.operation).count() + 1;
        let reply = (provider.answer)(&call, nth);
        provider.calls.push(call);
        (provider.calls.len() - 1, reply)
    };
    let _caller = Caller { shared: Arc::clone(&shared), seq };
    // A task of its own: a caller that hangs up does not take the request back.
    let work = tokio::spawn(async move {
        if matches!(reply, Reply::Hold | Reply::HoldThen(_)) {
            let _ = released.wait_for(|n| *n > seen).await;
        }
        let reply = match reply {
            Reply::HoldThen(Then::InUse) => Reply::InUse,
            Reply::HoldThen(Then::SlowDown) => Reply::SlowDown(1),
            Reply::HoldThen(Then::Refuse) => Reply::Refuse,
            Reply::HoldThen(Then::LostBefore) => Reply::LostBefore,
            other => other,
        };
        let mut provider = shared.lock();
        let effect = matches!(reply, Reply::Apply | Reply::Lost | Reply::Hold).then(|| provider.apply(seq));
        if let Some(call) = provider.calls.get_mut(seq) {
            call.answered = Some(Instant::now());
            call.wait =
                if let Reply::SlowDown(seconds) = reply { Some(Duration::from_secs(seconds)) } else { None };
        }
        drop(provider);
        match reply {
            Reply::Apply | Reply::Hold => axum::Json(json!({"effect": effect})).into_response(),
            Reply::Lost | Reply::LostBefore | Reply::HoldThen(_) => {
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
            Reply::InUse => StatusCode::CONFLICT.into_response(),
            Reply::SlowDown(seconds) => {
                (StatusCode::TOO_MANY_REQUESTS, [("retry-after", seconds.to_string())]).into_response()
            }
            Reply::Forbidden => StatusCode::FORBIDDEN.into_response(),
            Reply::Refuse => StatusCode::UNPROCESSABLE_ENTITY.into_response(),
        }
    });
    work.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// Notes when its caller is gone, answered or not: the server drops a request whose connection has ended.
struct Caller {
    shared: Arc<Shared>,
    seq: usize,
}

impl Drop for Caller {
    fn drop(&mut self) {
        if let Some(call) = self.shared.lock().calls.get_mut(self.seq) {
            call.left = Some(Instant::now());
        }
    }
}

impl Provider {
    /// Applies the call unless its key was seen; kinds without keys at the provider are applied each time.
    fn apply(&mut self, seq: usize) -> u64 {
        let next = u64::try_from(seq).unwrap_or(u64::MAX);
        let Some(call) = self.calls.get_mut(seq) else { return next };
        let keyed = call.kind != "effect.plain" && call.kind != "effect.desired";
        if keyed && let Some(effect) = self.by_key.get(&call.key) {
            return *effect;
        }
        call.applied = true;
        self.by_key.insert(call.key.clone(), next);
        self.found.entry(call.operation).or_insert(next);
        if let (Some(key), Some(n)) = (call.value["key"].as_str(), call.value["n"].as_i64()) {
            self.desired.insert(key.to_owned(), n);
        }
        next
    }
}

async fn find(State(shared): State<Arc<Shared>>, Path(operation): Path<Uuid>) -> Response {
    let mut provider = shared.lock();
    let nth = provider.lookups.entry(operation).or_default();
    *nth += 1;
    let nth = *nth;
    let look = (provider.look)(operation, nth);
    let found = provider.found.get(&operation).copied();
    drop(provider);
    match (look, found) {
        (Look::Truth, Some(effect)) => axum::Json(json!({"effect": effect})).into_response(),
        (Look::Truth, None) | (Look::Absent, _) => StatusCode::NOT_FOUND.into_response(),
        (Look::Undecided, _) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        (Look::Conflict, _) => StatusCode::CONFLICT.into_response(),
    }
}
