//! Paths of the sandbox itself; everything else is the provider.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Query, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};

use crate::app::App;
use crate::control::Action;
use crate::faults::{FaultFile, LimiterRule};
use crate::reply::Reply;
use crate::stripe::{Call, Params};

/// Larger bodies are refused: no call of these APIs comes near it.
const BODY_LIMIT: usize = 1 << 20;

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/journal", get(journal))
        .route("/ledger", get(ledger))
        .route("/control", post(control))
        .route("/twilio", get(twilio))
        .route("/faults", get(list_faults).post(add_faults).delete(clear_faults))
        .route("/faults/limiter", axum::routing::put(set_limiter).delete(clear_limiter))
        .route("/faults/{id}", delete(clear_fault))
        .fallback(provider)
        .with_state(app)
}

async fn provider(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let text = |name: &str| Some(parts.headers.get(name)?.to_str().ok()?.to_owned());
    let encoded = match parts.method {
        http::Method::POST => body.as_ref(),
        _ => parts.uri.query().unwrap_or_default().as_bytes(),
    };
    let path = parts.uri.path().trim_end_matches('/');
    if crate::twilio::serves(path) {
        let call = crate::twilio::Call {
            method: parts.method.to_string(),
            path: path.to_owned(),
            params: Params::parse(encoded),
            credentials: parts.headers.get(header::AUTHORIZATION).and_then(crate::twilio::basic),
            operation_id: text("x-backline-operation"),
            traceparent: text("traceparent"),
            base_url: text("host").map_or_else(String::new, |host| format!("http://{host}")),
        };
        return crate::twilio::answer(app, call).await.into_response();
    }
    let call = Call {
        method: parts.method.to_string(),
        path: parts.uri.path().trim_end_matches('/').to_owned(),
        params: Params::parse(encoded),
        key: text("idempotency-key").filter(|_| parts.method == http::Method::POST),
        account: text("stripe-account"),
        api_key: bearer(&parts.headers),
        traceparent: text("traceparent"),
    };
    let mut reply = crate::stripe::answer(app, call).await;
    if let Some(version) = text("stripe-version") {
        reply = reply.with("stripe-version", version);
    }
    reply.into_response()
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    value.strip_prefix("Bearer ").map(|key| key.trim().to_owned())
}

async fn journal(State(app): State<Arc<App>>) -> Response {
    let source = app.lock().journal.source();
    let bytes = match source {
        Err(bytes) => bytes,
        Ok(path) => match tokio::fs::read(path).await {
            Ok(bytes) => bytes,
            Err(error) => return (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        },
    };
    let mut response = Response::new(Body::from(bytes));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/x-ndjson"));
    response
}

async fn ledger(State(app): State<Arc<App>>, Query(query): Query<HashMap<String, String>>) -> Json<Value> {
    if query.contains_key("summary") {
        return Json(app.lock().ledger_summary());
    }
    Json(app.lock().ledger_report(query.get("operation_id").map(String::as_str)))
}

async fn twilio(State(app): State<Arc<App>>) -> Json<Value> {
    Json(app.lock().twilio.report())
}

async fn control(State(app): State<Arc<App>>, Json(action): Json<Action>) -> Json<Value> {
    Json(app.lock().control(action))
}

async fn list_faults(State(app): State<Arc<App>>) -> Json<Value> {
    Json(app.lock().faults.report())
}

async fn add_faults(State(app): State<Arc<App>>, Json(posted): Json<Value>) -> Response {
    let file = match parse_faults(posted) {
        Ok(file) => file,
        Err(reason) => return Reply::json(400, json!({"error": reason}).to_string()).into_response(),
    };
    Json(json!({"ids": app.lock().faults.add(file)})).into_response()
}

/// Reads rules in any accepted shape. Tried one by one, so that the reason names the wrong field.
pub(crate) fn parse_faults(posted: Value) -> Result<FaultFile, String> {
    if let Value::Array(_) = posted {
        let rules = serde_json::from_value(posted).map_err(|error| error.to_string())?;
        return Ok(FaultFile { rules, limiter: None });
    }
    if posted.get("fault").is_some() {
        let rule = serde_json::from_value(posted).map_err(|error| error.to_string())?;
        return Ok(FaultFile { rules: vec![rule], limiter: None });
    }
    serde_json::from_value(posted).map_err(|error| error.to_string())
}

async fn set_limiter(State(app): State<Arc<App>>, Json(limiter): Json<LimiterRule>) -> Json<Value> {
    app.lock().faults.add(FaultFile { rules: Vec::new(), limiter: Some(limiter) });
    Json(json!({"ids": []}))
}

async fn clear_limiter(State(app): State<Arc<App>>) -> Json<Value> {
    Json(json!({"cleared": app.lock().faults.clear_limiter()}))
}

async fn clear_faults(State(app): State<Arc<App>>) -> Json<Value> {
    Json(json!({"cleared": app.lock().faults.clear(None)}))
}

async fn clear_fault(State(app): State<Arc<App>>, Path(id): Path<u64>) -> Json<Value> {
    Json(json!({"cleared": app.lock().faults.clear(Some(id))}))
}
