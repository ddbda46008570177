//! Participants follow committed membership, step by step.
//!
//! Twilio's lists lag behind its writes. So whoever wrote owes a look after the lag (`twilio.recheck`), as an operation
//! of its own: waiting inside this one would make the next change of membership wait as well.

use crate::boundary::{About, Timing, age, attention, closed_by_others, owe};
use crate::difference::{Change, Wanted, difference};
use backline_failure::{Call, Class, Failure, Mode};
use backline_runtime::{Conclusion, Error, KindSpec, Operation, Read, Reconcile, Record, Step};
use backline_twilio::{
    Addition, ConversationSid, NewParticipant, Removal, Twilio, Who, add_participant, list_participants,
    remove_participant,
};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use sqlx::types::Json;
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

/// Handler of `twilio.participants`, and of `twilio.recheck` (`LATER`), which looks when lists show what was written.
pub(crate) struct Participants<const LATER: bool> {
    pub twilio: Twilio,
    pub timing: Timing,
}

/// What is wanted, and since when things are as they are.
pub(crate) struct Roster {
    sid: ConversationSid,
    known_for: Option<Duration>,
    touched: Option<Duration>,
    wanted: Wanted,
}

/// What was done.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Converged {
    /// Additions that were needed.
    pub added: usize,
    /// Who was taken out.
    pub removed: BTreeSet<Who>,
    /// Participants that are nobody's here; they stay.
    pub strangers: usize,
}

type Row = (String, Option<String>, Option<f64>, Option<f64>, Json<BTreeSet<Who>>, Json<BTreeSet<Who>>);

impl<const LATER: bool> Reconcile for Participants<LATER> {
    const KIND: &'static str = if LATER { "twilio.recheck" } else { "twilio.participants" };
    type Input = About;
    type Desired = Roster;
    type Output = Converged;

    fn spec(&self) -> KindSpec {
        self.timing.spec(Mode::Reconcile)
    }

    async fn read(
        &self,
        tx: &mut PgConnection,
        _operation: &Operation,
        about: &About,
    ) -> Result<Read<Roster>, sqlx::Error> {
        let sql = include_str!("../sql/roster.sql");
        let row: Option<Row> = sqlx::query_as(sql).bind(about.conversation).fetch_optional(tx).await?;
        Ok(match row {
            None => Read::Obsolete { rule: "conversation_deleted", seen: "no row".to_owned() },
            Some((state, ..)) if state != "active" => {
                Read::Obsolete { rule: "conversation_ended", seen: state }
            }
            // The creation's record asks again.
            Some((state, None, ..)) => Read::Obsolete { rule: "not_created", seen: state },
            Some((_, Some(sid), known_for, touched, members, removed)) => Read::Desired(Roster {
                sid: sid.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
                known_for: age(known_for),
                touched: age(touched),
                wanted: Wanted { members: members.0, removed: removed.0 },
            }),
        })
    }

    async fn converge(
        &self,
        call: &Call,
        _about: &About,
        roster: &Roster,
    ) -> Result<Step<Converged>, Failure> {
        if LATER && let Some(rest) = self.timing.unsettled(roster.touched) {
            return Ok(Step::Again(rest));
        }
        let missing = || self.timing.missing(roster.known_for);
        let list = async || list_participants(&self.twilio, call, &roster.sid).await?.ok_or_else(missing);
        let found = difference(&roster.wanted, &list().await?);
        let mut done = Converged { strangers: found.strangers, ..Converged::default() };
        let mut refused = None;
        for change in found.changes {
            match change {
                Change::Remove(sid, who) => {
                    match remove_participant(&self.twilio, call, &roster.sid, &sid).await? {
                        Removal::Removed | Removal::AlreadyAbsent => done.removed.insert(who),
                        Removal::ConversationClosed => return Err(closed_by_others()),
                    };
                }
                Change::Add(who) => {
                    let new = NewParticipant { who, attributes: None };
                    match add_participant(&self.twilio, call, &roster.sid, &new).await {
                        Ok(Addition::Added(_) | Addition::AlreadyPresent) => done.added += 1,
                        Ok(Addition::ConversationAbsent) => return Err(missing()),
                        Ok(Addition::ConversationClosed) => return Err(closed_by_others()),
                        // One that is refused does not keep the others out.
                        Err(failure) if failure.class == Class::Rejected => refused = Some(failure),
                        Err(failure) => return Err(failure),
                    }
                }
            }
        }
        let Some(refused) = refused else { return Ok(Step::Done(done)) };
        // An address may have been bound elsewhere by a move that is over by now, or by our own late request. One more
        // look, then a person decides.
        let left = difference(&roster.wanted, &list().await?).changes;
        if left.iter().any(|change| matches!(change, Change::Add(_))) {
            return Err(refused);
        }
        Ok(Step::Done(done))
    }

    async fn record(
        &self,
        tx: &mut Record<'_>,
        about: &About,
        end: Conclusion<'_, Converged>,
    ) -> Result<(), Error> {
        match end {
            Conclusion::Succeeded(done) => {
                let wrote = done.added > 0 || !done.removed.is_empty();
                touched(tx, about.conversation, wrote, &done.removed, &self.timing).await
            }
            Conclusion::Rejected { code, .. } => attention(tx, about.conversation, code).await,
            Conclusion::Obsolete { .. } => Ok(()),
        }
    }
}

/// Records that participants were written, or only seen, and who was found absent; owes the look after the lag.
pub(crate) async fn touched(
    tx: &mut Record<'_>,
    conversation: Uuid,
    wrote: bool,
    absent: &BTreeSet<Who>,
    timing: &Timing,
) -> Result<(), Error> {
    let sql = include_str!("../sql/touched.sql");
    sqlx::query(sql).bind(conversation).bind(wrote).execute(tx.connection()).await?;
    if !absent.is_empty() {
        let sql = include_str!("../sql/confirmed.sql");
        sqlx::query(sql).bind(conversation).bind(Json(absent)).execute(tx.connection()).await?;
    }
    if wrote {
        owe(tx, Participants::<true>::KIND, conversation, Some(timing.lookup_lag())).await?;
    }
    Ok(())
}
