//! One call, from the wire to the reply. Everything happens under one lock without waiting, and the journal line is
//! written before the lock is released, as with every provider here.

use std::sync::Arc;

use serde_json::json;

use super::change::Change;
use super::endpoint::Endpoint;
use super::error::ApiError;
use super::execute::execute;
use super::lies;
use super::read::{Asked, read};
use super::{PROVIDER, render, sid};
use crate::app::{App, Inner};
use crate::clock::real_now_text;
use crate::faults::{Facts, Plan};
use crate::hold::hold;
use crate::journal::Line;
use crate::reply::{Delivery, Reply};
use crate::stripe::Params;

/// A request that arrived whole.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) params: Params,
    /// User and password.
    pub(crate) credentials: Option<(String, String)>,
    pub(crate) operation_id: Option<String>,
    pub(crate) traceparent: Option<String>,
    /// Where the caller found us, for the URLs of answers.
    pub(crate) base_url: String,
}

/// Answers a call. Dropping the future does not undo or prevent its effect.
pub(crate) async fn answer(app: Arc<App>, call: Call) -> Reply {
    let (line, plan, (delay, hang)) = match app.lock().begin_twilio(&call) {
        Ok(reply) => return reply,
        Err(held) => *held,
    };
    hold(app, delay, hang, move |inner, abandoned| {
        if let Some(conversation) = &line.conversation {
            inner.twilio.landed(conversation, line.seq);
        }
        inner.end_twilio(&call, Line { abandoned, was_held: true, ..line }, &plan)
    })
    .await
}

type Held = (Line, Plan, (std::time::Duration, crate::hold::Hang));

impl Call {
    /// The segments of the path with their percent-encoding undone.
    pub(crate) fn segments(&self) -> Vec<String> {
        let decode = |segment: &str| {
            // A plus and an ampersand are themselves in a path; only in a form they are not.
            let pair = format!("={}", segment.replace('+', "%2B").replace('&', "%26"));
            url::form_urlencoded::parse(pair.as_bytes()).map(|(_, text)| text.into_owned()).collect()
        };
        self.path.trim_start_matches('/').split('/').map(decode).collect()
    }
}

impl Inner {
    /// The reply, or the call that is to wait first.
    fn begin_twilio(&mut self, call: &Call) -> Result<Reply, Box<Held>> {
        let seq = self.journal.next_seq();
        let segments = call.segments();
        let endpoint = Endpoint::route(&call.method, &segments);
        let named = endpoint.and_then(Endpoint::conversation);
        let conversation = named.and_then(|id| self.twilio.world.find(id)).map(|room| room.is.sid.clone());
        let plan = self.faults.plan(
            &Facts {
                provider: PROVIDER,
                kind: endpoint.map(Endpoint::kind),
                method: &call.method,
                path: &call.path,
                operation_id: call.operation_id.as_deref(),
                key: conversation.as_deref(),
                account: None,
                api_key: call.credentials.as_ref().map(|(user, _)| user.as_str()),
            },
            self.held,
        );
        let line = Line {
            seq,
            at: real_now_text(),
            received_at: Some(real_now_text()),
            provider: Some(PROVIDER.to_owned()),
            method: call.method.clone(),
            path: call.path.clone(),
            kind: endpoint.map(|endpoint| endpoint.kind().to_owned()),
            operation_id: call.operation_id.clone(),
            traceparent: call.traceparent.clone(),
            params_hash: (call.method != "GET").then(|| call.params.hash(&call.path)),
            received: true,
            overlaps: self.twilio.in_flight(conversation.as_deref()),
            conversation,
            fault: plan.rule.clone(),
            ..Line::default()
        };
        if let Some(reply) = self.twilio_refusal(call, &plan) {
            return Ok(self.close_twilio(line, reply));
        }
        let Some(hold) = plan.hold() else { return Ok(self.end_twilio(call, line, &plan)) };
        if call.method != "GET" {
            self.record(&Line { replied: json!("held"), ..line.clone() });
        }
        self.begin_hold();
        if let Some(conversation) = &line.conversation {
            self.twilio.took_off(conversation, seq);
        }
        Err(Box::new((line, plan, hold)))
    }

    /// Executes and writes the line.
    fn end_twilio(&mut self, call: &Call, mut line: Line, plan: &Plan) -> Reply {
        line.at = real_now_text();
        let segments = call.segments();
        let now_ms = self.twilio.world.clock.now_ms();
        let asked = Asked { path: &call.path, params: &call.params, base_url: &call.base_url, now_ms };
        let forced = plan.main.as_ref().and_then(lies::stored_error);
        let truth = match (&forced, Endpoint::route(&call.method, &segments)) {
            (Some((error, false)), _) => Err(error.clone()),
            (_, None) => Err(ApiError::missing(&call.path)),
            (_, Some(endpoint)) if call.method == "GET" => {
                read(endpoint, &self.twilio.world, asked).map(|body| Reply::json(200, body.to_string()))
            }
            (_, Some(endpoint)) => {
                let hide_ms = plan.hide.map_or(self.twilio.lookup_lag_ms, crate::duration::millis);
                execute(endpoint, &self.twilio.world, asked, hide_ms)
                    .map(|change| self.carry_out(&change, &mut line, asked))
            }
        };
        let reply = match (truth, forced) {
            (Err(error), _) | (Ok(_), Some((error, true))) => error.into_reply(),
            (Ok(reply), _) => reply,
        };
        let lie = plan.main.as_ref().map(|fault| lies::distort(fault, reply.clone()));
        self.close_twilio(line, lie.unwrap_or(reply))
    }

    /// Makes a change true, notes it on the line, and shows what was changed.
    fn carry_out(&mut self, change: &Change, line: &mut Line, asked: Asked<'_>) -> Reply {
        let world = &mut self.twilio.world;
        let new = matches!(change, Change::Conversation { is } if world.find(&is.sid).is_none());
        world.apply(change.clone());
        line.applied = true;
        line.conversation = Some(change.conversation().to_owned());
        line.object_id = Some(change.object().to_owned());
        line.change = serde_json::to_value(change).ok();
        let room = world.find(change.conversation());
        let body = match (room, change) {
            (Some(room), Change::Conversation { .. }) => {
                render::conversation(room, asked.base_url, asked.now_ms)
            }
            (Some(room), Change::Joined { is, .. }) => render::participant(room, is, asked.base_url),
            _ => return Reply::json(204, ""),
        };
        let created = new || matches!(change, Change::Joined { .. });
        Reply::json(if created { 201 } else { 200 }, body.to_string())
    }

    /// Writes the line of a finished call and completes its reply.
    fn close_twilio(&mut self, mut line: Line, reply: Reply) -> Reply {
        line.replied = match reply.delivery {
            Delivery::Dropped => json!("dropped"),
            _ => json!(reply.status),
        };
        if !self.record(&line) {
            return Reply::dropped();
        }
        reply
            .with("twilio-request-id", sid("RQ", line.seq))
            .with("twilio-concurrent-requests", (self.held + 1).to_string())
            .with("twilio-request-duration", "0.001")
    }
}
