//! Closing at Twilio, for conversations that are closed here and for those that are archived. Closed is for good there:
//! no request of this worker sets another state, so nothing old can reopen anything.

use crate::boundary::{About, Timing, age, attention, serial_key, sid_of};
use backline_failure::{Call, Failure, Mode};
use backline_runtime::{Conclusion, Error, KindSpec, Operation, Read, Reconcile, Record, Step};
use backline_twilio::{ConversationSid, State, StateChange, Twilio, set_state};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use std::time::Duration;

/// Handler of `twilio.close`, and of `twilio.archive_close` (`ARCHIVED`).
pub(crate) struct End<const ARCHIVED: bool> {
    pub twilio: Twilio,
    pub timing: Timing,
}

/// A conversation that has to be closed.
pub(crate) struct Ending {
    sid: ConversationSid,
    known_for: Option<Duration>,
}

/// How it was found closed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Closed {
    /// By this operation.
    Now,
    /// Before it.
    Already,
}

impl<const ARCHIVED: bool> Reconcile for End<ARCHIVED> {
    const KIND: &'static str = if ARCHIVED { "twilio.archive_close" } else { "twilio.close" };
    const SERIAL_KEY: Option<fn(&About) -> String> = Some(|about| serial_key(about.conversation));
    type Input = About;
    type Desired = Ending;
    type Output = Closed;

    fn spec(&self) -> KindSpec {
        self.timing.spec(Mode::Reconcile)
    }

    async fn read(
        &self,
        tx: &mut PgConnection,
        _operation: &Operation,
        about: &About,
    ) -> Result<Read<Ending>, sqlx::Error> {
        let sql = include_str!("../sql/state.sql");
        let row: Option<(String, Option<String>, Option<f64>)> =
            sqlx::query_as(sql).bind(about.conversation).fetch_optional(tx).await?;
        Ok(match row {
            None => Read::Obsolete { rule: "conversation_deleted", seen: "no row".to_owned() },
            Some((state, ..)) if state == "active" => Read::Obsolete { rule: "not_ended", seen: state },
            Some((state, ..)) if ARCHIVED && state != "archived" => {
                Read::Obsolete { rule: "not_archived", seen: state }
            }
            // The creation's guard stops it, or its record asks again.
            Some((state, None, _)) => Read::Obsolete { rule: "not_created", seen: state },
            Some((_, Some(sid), known_for)) => {
                Read::Desired(Ending { sid: sid_of(&sid)?, known_for: age(known_for) })
            }
        })
    }

    async fn converge(&self, call: &Call, _about: &About, ending: &Ending) -> Result<Step<Closed>, Failure> {
        match set_state(&self.twilio, call, &ending.sid, State::Closed).await? {
            StateChange::Changed(_) => Ok(Step::Done(Closed::Now)),
            StateChange::AlreadyClosed => Ok(Step::Done(Closed::Already)),
            // Closed was wanted, with what was said in it; absent is something else.
            StateChange::Absent => self.timing.missing(ending.known_for),
        }
    }

    async fn record(
        &self,
        tx: &mut Record<'_>,
        about: &About,
        end: Conclusion<'_, Closed>,
    ) -> Result<(), Error> {
        match end {
            Conclusion::Succeeded(_) => {
                let sql = include_str!("../sql/ended.sql");
                sqlx::query(sql).bind(about.conversation).execute(tx.connection()).await?;
                Ok(())
            }
            Conclusion::Rejected { code, .. } => attention(tx, about.conversation, code).await,
            Conclusion::Obsolete { .. } => Ok(()),
        }
    }

    async fn ask_person(&self, tx: &mut Record<'_>, about: &About, why: &Failure) -> Result<(), Error> {
        attention(tx, about.conversation, &why.code).await
    }
}
