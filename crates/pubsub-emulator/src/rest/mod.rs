//! The REST side: `/v1/...` as the admin clients speak it, and the emulator's own pages.

mod data;
mod json;
mod operator;
mod resources;
mod shapes;

pub(crate) use operator::{clear_faults, clear_log, faults, log, merge_faults, replace_faults, stats};

use crate::broker::Broker;
use crate::codes::http_of;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tonic::Status;

/// One REST call, taken apart.
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Path after `/v1/`, without the verb.
    pub(crate) name: String,
    /// What follows the last colon, as in `subscriptions/s:seek`.
    pub(crate) verb: String,
    pub(crate) query: HashMap<String, String>,
    pub(crate) body: Bytes,
}

impl Call {
    fn page(&self) -> (i32, &str) {
        let size = self.query.get("pageSize").and_then(|size| size.parse().ok()).unwrap_or(0);
        (size, self.query.get("pageToken").map_or("", String::as_str))
    }

    /// The body as a message; an empty one is the empty message.
    fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, Status> {
        let body: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        serde_json::from_slice(body).map_err(|e| Status::invalid_argument(format!("body: {e}")))
    }
}

/// Answers one REST call.
pub(crate) async fn serve(broker: Arc<Broker>, request: http::Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let Some(path) = parts.uri.path().strip_prefix("/v1/") else {
        return error(&Status::not_found("no such page"));
    };
    let path = percent_decoded(path);
    let last = path.rfind('/').map_or(0, |slash| slash + 1);
    let (name, verb) = match path[last..].rsplit_once(':') {
        Some((_, verb)) => (path[..path.len() - verb.len() - 1].to_owned(), verb.to_owned()),
        None => (path, String::new()),
    };
    let Ok(query) = axum::extract::Query::<HashMap<String, String>>::try_from_uri(&parts.uri) else {
        return error(&Status::invalid_argument("query: unreadable"));
    };
    let body = match axum::body::to_bytes(body, crate::limits::REQUEST_BYTES).await {
        Ok(body) => body,
        Err(e) => return error(&Status::invalid_argument(format!("body: {e}"))),
    };
    let call = Call { method: parts.method, name, verb, query: query.0, body };
    let answer = match data::serve(&broker, &call).await {
        Some(answer) => answer,
        None => resources::serve(&broker, &call),
    };
    match answer {
        Ok(value) => axum::Json(value).into_response(),
        Err(status) => error(&status),
    }
}

/// Google's error body: <https://cloud.google.com/apis/design/errors#http_mapping>.
pub(crate) fn error(status: &Status) -> Response {
    let (name, http) = http_of(status.code());
    let body: Value =
        json!({"error": {"code": http, "message": status.message(), "status": name, "details": []}});
    let code = StatusCode::from_u16(http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (code, axum::Json(body)).into_response()
}

fn percent_decoded(path: &str) -> String {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = (byte == b'%').then(|| after.get(..2).and_then(|h| std::str::from_utf8(h).ok())).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                rest = &after[2..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
