//! Participants follow committed membership, step by step.
//!
//! Twilio's lists lag behind its writes. So whoever wrote owes another look after the lag. A change of membership that
//! comes sooner is carried out at once, and the look is made all the same.

use crate::boundary::{About, Timing, age, attention, closed_by_others, serial_key, sid_of};
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

/// Handler of `twilio.participants`.
pub(crate) struct Participants {
    pub twilio: Twilio,
    pub timing: Timing,
}

/// What is wanted, and since when the provider may know of it.
pub(crate) struct Roster {
    sid: ConversationSid,
    known_for: Option<Duration>,
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

type Row = (String, Option<String>, Option<f64>, Json<BTreeSet<Who>>, Json<BTreeSet<Who>>);

impl Reconcile for Participants {
    const KIND: &'static str = "twilio.participants";
    const SERIAL_KEY: Option<fn(&About) -> String> = Some(|about| serial_key(about.conversation));
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
            Some((_, Some(sid), known_for, members, removed)) => Read::Desired(Roster {
                sid: sid_of(&sid)?,
                known_for: age(known_for),
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
        let missing = || self.timing.missing(roster.known_for);
        let list = async || list_participants(&self.twilio, call, &roster.sid).await;
        let Some(listed) = list().await? else { return missing() };
        let found = difference(&roster.wanted, &listed);
        let mut done = Converged { strangers: found.strangers, ..Converged::default() };
        let mut refused = None;
        for change in found.changes {
            match change {
                Change::Remove(sid, who) => {
                    match remove_participant(&self.twilio, call, &roster.sid, &sid).await? {
                        Removal::Removed | Removal::AlreadyAbsent => done.removed.insert(who),
                        Removal::ConversationClosed => return Ok(closed_by_others()),
                    };
                }
                Change::Add(who) => {
                    let new = NewParticipant { who, attributes: None };
                    match add_participant(&self.twilio, call, &roster.sid, &new).await {
                        Ok(Addition::Added(_) | Addition::AlreadyPresent) => done.added += 1,
                        Ok(Addition::ConversationAbsent) => return missing(),
                        Ok(Addition::ConversationClosed) => return Ok(closed_by_others()),
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
        let Some(listed) = list().await? else { return missing() };
        let left = difference(&roster.wanted, &listed).changes;
        if left.iter().any(|change| matches!(change, Change::Add(_))) {
            return Ok(Step::Person(refused));
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

    async fn ask_person(&self, tx: &mut Record<'_>, about: &About, why: &Failure) -> Result<(), Error> {
        attention(tx, about.conversation, &why.code).await
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
        let look = Participants::owed(conversation, &About { conversation });
        tx.owe(look.after(timing.lookup_lag())).await?;
    }
    Ok(())
}
