//! Removing one participant: an operation of its own, with an outcome of its own. A missing member row is a reason to
//! look, and never a proof that somebody is gone.

use crate::boundary::{About, Timing, age, attention, closed_by_others, serial_key, sid_of};
use crate::participants::{Participants, touched};
use backline_failure::{Call, Failure, Mode};
use backline_runtime::{Conclusion, Error, KindSpec, Operation, Read, Reconcile, Record, Step};
use backline_twilio::{ConversationSid, Removal, Twilio, Who, list_participants, remove_participant};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use sqlx::types::Json;
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

/// Handler of `twilio.remove_participant`.
pub(crate) struct RemoveParticipant {
    pub twilio: Twilio,
    pub timing: Timing,
}

/// Input: who is to be gone from where.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Leaver {
    /// The application's conversation.
    pub conversation: Uuid,
    /// Their identity at Twilio; the member's row may be gone.
    pub who: Who,
}

/// A membership that has to end.
pub(crate) struct Leaving {
    sid: ConversationSid,
    known_for: Option<Duration>,
    touched: Option<Duration>,
    confirmed: bool,
}

/// How they were found to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Gone {
    /// A convergence of all participants has taken them out.
    Before,
    /// This operation took them out.
    Removed,
    /// A list that could not lag behind any write of ours does not have them.
    NotListed,
}

type Row = (String, Option<String>, Option<f64>, Option<f64>, bool, bool);

impl Reconcile for RemoveParticipant {
    const KIND: &'static str = "twilio.remove_participant";
    const SERIAL_KEY: Option<fn(&Leaver) -> String> = Some(|leaver| serial_key(leaver.conversation));
    type Input = Leaver;
    type Desired = Leaving;
    type Output = Gone;

    fn spec(&self) -> KindSpec {
        self.timing.spec(Mode::Reconcile)
    }

    async fn read(
        &self,
        tx: &mut PgConnection,
        _operation: &Operation,
        leaver: &Leaver,
    ) -> Result<Read<Leaving>, sqlx::Error> {
        let query = sqlx::query_as(include_str!("../sql/leaver.sql"));
        let row: Option<Row> =
            query.bind(leaver.conversation).bind(Json(&leaver.who)).fetch_optional(tx).await?;
        Ok(match row {
            None => Read::Obsolete { rule: "conversation_deleted", seen: "no row".to_owned() },
            // Twilio takes no changes to a closed conversation, and nobody talks in it.
            Some((state, ..)) if state != "active" => {
                Read::Obsolete { rule: "conversation_ended", seen: state }
            }
            Some((state, None, ..)) => Read::Obsolete { rule: "not_created", seen: state },
            Some((state, .., true, _)) => Read::Obsolete { rule: "member_again", seen: state },
            Some((_, Some(sid), known_for, touched, _, confirmed)) => Read::Desired(Leaving {
                sid: sid_of(&sid)?,
                known_for: age(known_for),
                touched: age(touched),
                confirmed,
            }),
        })
    }

    async fn converge(&self, call: &Call, leaver: &Leaver, leaving: &Leaving) -> Result<Step<Gone>, Failure> {
        if leaving.confirmed {
            return Ok(Step::Done(Gone::Before));
        }
        let Some(listed) = list_participants(&self.twilio, call, &leaving.sid).await? else {
            return self.timing.missing(leaving.known_for);
        };
        let mut gone = Gone::NotListed;
        for theirs in listed.iter().filter(|participant| participant.who().as_ref() == Some(&leaver.who)) {
            match remove_participant(&self.twilio, call, &leaving.sid, &theirs.sid).await? {
                Removal::Removed | Removal::AlreadyAbsent => gone = Gone::Removed,
                Removal::ConversationClosed => return Ok(closed_by_others()),
            }
        }
        match self.timing.unsettled(leaving.touched) {
            // They may have been added a moment ago, and the list not know it yet.
            Some(rest) if gone == Gone::NotListed => Ok(Step::Again(rest)),
            _ => Ok(Step::Done(gone)),
        }
    }

    async fn record(
        &self,
        tx: &mut Record<'_>,
        leaver: &Leaver,
        end: Conclusion<'_, Gone>,
    ) -> Result<(), Error> {
        match end {
            // A removal that was sent before they were a member again may still land, and only this operation knows it.
            Conclusion::Obsolete { rule: "member_again", .. } => {
                let about = About { conversation: leaver.conversation };
                let look = Participants::owed(leaver.conversation, &about);
                tx.owe(look.after(self.timing.lookup_lag())).await.map(drop)
            }
            Conclusion::Succeeded(Gone::Before) | Conclusion::Obsolete { .. } => Ok(()),
            // Also an absence counts as a write: whoever made it true may have been abandoned or unrecorded.
            Conclusion::Succeeded(Gone::Removed | Gone::NotListed) => {
                let absent = BTreeSet::from([leaver.who.clone()]);
                touched(tx, leaver.conversation, true, &absent, &self.timing).await
            }
            Conclusion::Rejected { code, .. } => attention(tx, leaver.conversation, code).await,
        }
    }

    async fn ask_person(&self, tx: &mut Record<'_>, leaver: &Leaver, why: &Failure) -> Result<(), Error> {
        attention(tx, leaver.conversation, &why.code).await
    }
}
