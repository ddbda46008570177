//! A server that answers what a test tells it to, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use backline_failure::{Call, Deadline};
use backline_stripe::{Amount, ApiKey, Config, Currency, Stripe, TransferInstruction};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use uuid::Uuid;

pub(crate) const OPERATION: Uuid = Uuid::from_u128(0x0193_4c66_7f6e_7c11_8d0d_0000_0000_0001);

pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) body: String,
}

pub(crate) fn answer(status: u16, body: impl ToString) -> Answer {
    Answer { status, headers: Vec::new(), body: body.to_string() }
}

#[derive(Clone, Default)]
pub(crate) struct StandIn {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    pub(crate) url: String,
}

impl StandIn {
    /// Serves the answers in order; the last one is repeated.
    pub(crate) async fn serve(answers: Vec<Answer>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let stand_in = Self { answers: Arc::new(Mutex::new(answers.into())), url, ..Self::default() };
        let app = Router::new().fallback(handle).with_state(stand_in.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(stand_in)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn handle(
    State(stand_in): State<StandIn>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body = String::from_utf8_lossy(&body).into_owned();
    stand_in.seen.lock().unwrap_or_else(PoisonError::into_inner).push(Seen { method, uri, headers, body });
    let mut answers = stand_in.answers.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
    let Some(answer) = answer else { return StatusCode::NOT_IMPLEMENTED.into_response() };
    let mut response = answer.body.into_response();
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::IM_A_TEAPOT);
    for (name, value) in answer.headers {
        response.headers_mut().insert(name, axum::http::HeaderValue::from_static(value));
    }
    response
}

pub(crate) fn stripe(url: &str, key: &str) -> anyhow::Result<Stripe> {
    // Another test of this process may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(Stripe::new(Config {
        api_key: ApiKey::new(key)?,
        base_url: url.parse()?,
        connect_timeout: Config::CONNECT_TIMEOUT,
    })?)
}

pub(crate) fn call() -> Call {
    let minute = Duration::from_secs(60);
    Call::new(OPERATION, 1, 1, 1, "key-of-the-submission".to_owned(), minute, Deadline::after(minute))
}

pub(crate) fn instruction() -> anyhow::Result<TransferInstruction> {
    Ok(TransferInstruction {
        amount: Amount::from_minor(1250, Currency::new("eur")?)?,
        destination: "acct_1".to_owned(),
        description: None,
    })
}

/// A transfer as Stripe shows it.
pub(crate) fn transfer(id: &str, operation: &str, minor: i64) -> Value {
    json!({
        "id": id, "object": "transfer", "amount": minor, "amount_reversed": 0, "balance_transaction": "txn_1",
        "created": 1_700_000_000, "currency": "eur", "description": null, "destination": "acct_1",
        "destination_payment": "py_1", "livemode": false, "metadata": {"operation_id": operation},
        "reversals": {"object": "list", "data": [], "has_more": false, "url": "/v1/transfers/tr_1/reversals"},
        "reversed": false, "source_transaction": null, "source_type": "card", "transfer_group": operation,
    })
}

pub(crate) fn list(data: &[Value], has_more: bool) -> Value {
    json!({"object": "list", "data": data, "has_more": has_more, "url": "/v1/transfers"})
}
