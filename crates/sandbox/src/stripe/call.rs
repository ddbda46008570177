//! One call, from the wire to the reply.
//!
//! Everything that is decided or changed happens under one lock without waiting, and the journal line is
//! written before the lock is released: a client that goes away cannot stop a call halfway.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::endpoint::Endpoint;
use super::error::ApiError;
use super::execute::execute;
use super::expand;
use super::form::Params;
use super::idempotency::Begin;
use super::lies;
use super::objects::{Context, Refused};
use super::read::read;
use crate::app::{App, Inner};
use crate::clock::real_now_text;
use crate::faults::{Becomes, Facts, Plan};
use crate::hold::{Hang, hold};
use crate::journal::{Line, Stored};
use crate::reply::{Delivery, Reply};

const PROVIDER: &str = "stripe";

/// A request that arrived whole.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) params: Params,
    pub(crate) key: Option<String>,
    pub(crate) account: Option<String>,
    pub(crate) api_key: Option<String>,
    pub(crate) traceparent: Option<String>,
}

/// A call that waits before it executes; its key is in flight meanwhile.
#[derive(Debug)]
struct Held {
    line: Line,
    plan: Plan,
    delay: Duration,
    hang: Hang,
}

enum Begun {
    Done(Reply),
    Held(Box<Held>),
}

/// Answers a call. Dropping the future does not undo or prevent its effect.
pub(crate) async fn answer(app: Arc<App>, call: Call) -> Reply {
    let held = match app.lock().begin(&call) {
        Begun::Done(reply) => return reply,
        Begun::Held(held) => held,
    };
    let Held { line, plan, delay, hang } = *held;
    hold(app, delay, hang, move |inner, abandoned| inner.end(&call, Line { abandoned, ..line }, &plan)).await
}

impl Call {
    fn operation_id(&self) -> Option<&str> {
        let named = self.params.get("metadata[operation_id]");
        named.or_else(|| self.params.get("transfer_group").filter(|_| self.method == "GET"))
    }

    fn facts(&self) -> Facts<'_> {
        let endpoint = Endpoint::route(&self.method, &self.path);
        Facts {
            provider: PROVIDER,
            kind: endpoint.ok().and_then(Endpoint::kind),
            method: &self.method,
            path: &self.path,
            operation_id: self.operation_id(),
            key: self.key.as_deref(),
            account: self.account.as_deref(),
            api_key: self.api_key.as_deref(),
        }
    }

    fn line(&self, seq: u64, plan: &Plan) -> Line {
        let mut line = Line {
            seq,
            at: real_now_text(),
            received_at: Some(real_now_text()),
            provider: Some(PROVIDER.to_owned()),
            method: self.method.clone(),
            path: self.path.clone(),
            account: self.account.clone(),
            traceparent: self.traceparent.clone(),
            received: true,
            fault: plan.rule.clone(),
            ..Line::default()
        };
        if self.method != "GET" {
            line.operation_id = self.operation_id().map(str::to_owned);
            line.key = self.key.clone();
            line.params_hash = Some(self.params.hash(&self.path));
            line.amount = self.params.int("amount");
            line.currency = self.params.text("currency");
            let endpoint = Endpoint::route(&self.method, &self.path);
            line.kind = endpoint.ok().and_then(Endpoint::kind).map(str::to_owned);
        }
        line
    }
}

impl Inner {
    fn begin(&mut self, call: &Call) -> Begun {
        let seq = self.journal.next_seq();
        let plan = self.faults.plan(&call.facts(), self.held);
        if let Some(reply) = self.refusal(call, &plan) {
            return Begun::Done(self.close(call.line(seq, &plan), reply));
        }
        let line = call.line(seq, &plan);
        if let (Some(key), Some(params_hash)) = (&call.key, &line.params_hash) {
            let now_ms = self.stripe.world.clock.now_ms();
            let met = self.stripe.keys.begin(call.account.as_deref(), key, params_hash, now_ms);
            let (replayed, reply) = match met {
                Begin::Fresh => return self.start(call, line, plan),
                Begin::InUse => (false, lies::in_use().into_reply()),
                Begin::Mismatch => {
                    let message = format!(
                        "Keys for idempotent requests can only be used with the same parameters they were first \
                         used with. Try using a key other than '{key}' if you meant to execute a different request."
                    );
                    (false, ApiError::new(400, "idempotency_error", None, message).into_reply())
                }
                Begin::Replay { status, body } => {
                    let mut reply = Reply::json(status, body).with("idempotent-replayed", "true");
                    if status >= 500 {
                        reply = reply.with("stripe-should-retry", "false");
                    }
                    let lie = plan.main.as_ref().map(|fault| lies::distort(fault, reply.clone()));
                    (true, lie.unwrap_or(reply))
                }
            };
            return Begun::Done(self.close(Line { replayed, ..line }, reply));
        }
        self.start(call, line, plan)
    }

    fn get(&mut self, call: &Call, line: Line, plan: &Plan) -> Reply {
        let endpoint = match Endpoint::route(&call.method, &call.path) {
            Ok(endpoint) => endpoint,
            Err(error) => return self.close(line, error.into_reply()),
        };
        let world = &self.stripe.world;
        let now_ms = world.clock.now_ms();
        let account = call.account.as_deref();
        // A read has no key to store an error for; its caller sees the error all the same.
        let forced = plan.main.as_ref().and_then(lies::stored_error).map(|(error, _)| error);
        let answer = forced.map_or_else(|| read(endpoint, world, &call.params, account, now_ms), Err);
        let reply = match answer {
            Ok(mut body) => {
                expand::expand(world, &mut body, &call.params.expand(), account, now_ms);
                Reply::json(200, body.to_string())
            }
            Err(error) => error.into_reply(),
        };
        if let (Endpoint::BalanceTransaction(id) | Endpoint::Payout(id), 200) = (endpoint, reply.status) {
            self.stripe.world.polled(id);
        }
        let lie = plan.main.as_ref().map(|fault| lies::distort(fault, reply.clone()));
        self.close(line, lie.unwrap_or(reply))
    }

    /// Executes now, or later when a fault says so.
    fn start(&mut self, call: &Call, line: Line, plan: Plan) -> Begun {
        let Some((delay, hang)) = plan.hold() else { return Begun::Done(self.end(call, line, &plan)) };
        if call.method != "GET" {
            self.record(&Line { replied: json!("held"), ..line.clone() });
        }
        self.begin_hold();
        Begun::Held(Box::new(Held { line: Line { was_held: true, ..line }, plan, delay, hang }))
    }

    /// Executes, stores the answer for the key, and writes the line.
    fn end(&mut self, call: &Call, mut line: Line, plan: &Plan) -> Reply {
        line.at = real_now_text();
        if call.method == "GET" {
            return self.get(call, line, plan);
        }
        let account = call.account.as_deref();
        let now_ms = self.stripe.world.clock.now_ms();
        let context = Context {
            number: self.stripe.world.next_number(),
            account: call.account.clone(),
            now_ms,
            hide_ms: plan.hide.map_or(self.stripe.lookup_lag_ms, crate::duration::millis),
            becomes: plan.becomes.as_ref().map(|(status, after, code)| Becomes {
                status: status.clone(),
                at_ms: now_ms.saturating_add(crate::duration::millis(*after)),
                code: code.clone(),
            }),
        };
        let forced = plan.main.as_ref().and_then(lies::stored_error);
        let executed = match (&forced, Endpoint::route(&call.method, &call.path)) {
            (Some((error, false)), _) => Err(Box::new(Refused { error: error.clone(), change: None })),
            (_, Ok(endpoint)) => execute(endpoint, &self.stripe.world, &call.params, &context),
            (_, Err(error)) => Err(error.into()),
        };
        let (mut error, change) = match executed {
            Ok(change) => (None, Some(change)),
            Err(refused) => (Some(refused.error), refused.change),
        };
        let executed_well = error.is_none();
        if let (None, Some((stored, true))) = (&error, forced) {
            error = Some(stored);
        }
        if let Some(change) = &change {
            self.stripe.world.apply(change.clone());
            let (amount, currency) = change.money();
            // A declined intent is an object, but no effect.
            line.applied = executed_well;
            line.object_id = Some(change.id());
            line.amount = Some(amount);
            line.currency = Some(currency.to_owned());
            line.change = serde_json::to_value(change).ok();
        }
        let rendered = error.is_none() && call.params.expand().is_empty();
        let reply = match (error, &change) {
            (Some(error), _) => error.into_reply(),
            (None, Some(change)) => Reply::json(200, self.stripe.show(change, &call.params, account, now_ms)),
            (None, None) => Reply::json(200, "{}"),
        };
        if let Some(key) = &call.key {
            self.stripe.keys.finish(account, key, reply.status, reply.body.clone());
            let body = (!rendered).then(|| String::from_utf8_lossy(&reply.body).into_owned());
            line.stored = Some(Stored { status: reply.status, at_ms: now_ms, body });
        }
        let lie = plan.main.as_ref().map(|fault| lies::distort(fault, reply.clone()));
        self.close(line, lie.unwrap_or(reply))
    }

    /// Writes the line of a finished call and completes its reply.
    fn close(&mut self, mut line: Line, reply: Reply) -> Reply {
        line.replied = match reply.delivery {
            Delivery::Dropped => json!("dropped"),
            _ => json!(reply.status),
        };
        let request_id = format!("req_1B{:014x}", line.seq);
        let key = line.key.clone();
        if !self.record(&line) {
            return Reply::dropped();
        }
        let reply = reply.with("request-id", request_id);
        match key {
            Some(key) => reply.with("idempotency-key", key),
            None => reply,
        }
    }
}
