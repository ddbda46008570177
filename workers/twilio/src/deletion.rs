//! Deleting at Twilio what was deleted here, by the SID that the tombstone kept.

use crate::boundary::{About, Timing, age, serial_key, sid_of};
use backline_failure::{Call, Failure, Mode};
use backline_runtime::{Conclusion, Error, KindSpec, Operation, Read, Reconcile, Record, Step};
use backline_twilio::{
    ConversationRef, ConversationSid, Deletion, Twilio, delete_conversation, fetch_conversation,
};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use std::time::Duration;

/// Handler of `twilio.delete`.
pub(crate) struct Delete {
    pub twilio: Twilio,
    pub timing: Timing,
}

/// A conversation that has to be gone.
pub(crate) struct Tombstone {
    sid: Option<ConversationSid>,
    known_for: Option<Duration>,
}

/// What is gone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Gone {
    /// The provider's id; none if Twilio never had it.
    pub sid: Option<ConversationSid>,
}

impl Reconcile for Delete {
    const KIND: &'static str = "twilio.delete";
    const SERIAL_KEY: Option<fn(&About) -> String> = Some(|about| serial_key(about.conversation));
    type Input = About;
    type Desired = Tombstone;
    type Output = Gone;

    fn spec(&self) -> KindSpec {
        self.timing.spec(Mode::Reconcile)
    }

    async fn read(
        &self,
        tx: &mut PgConnection,
        _operation: &Operation,
        about: &About,
    ) -> Result<Read<Tombstone>, sqlx::Error> {
        let sql = include_str!("../sql/tombstone.sql");
        let row: Option<(Option<String>, Option<f64>)> =
            sqlx::query_as(sql).bind(about.conversation).fetch_optional(tx).await?;
        let Some((sid, known_for)) = row else {
            return Ok(Read::Obsolete { rule: "not_deleted", seen: "no tombstone, or a row".to_owned() });
        };
        let sid = sid.as_deref().map(sid_of).transpose()?;
        Ok(Read::Desired(Tombstone { sid, known_for: age(known_for) }))
    }

    async fn converge(&self, call: &Call, about: &About, grave: &Tombstone) -> Result<Step<Gone>, Failure> {
        let sid = match &grave.sid {
            Some(sid) => sid.clone(),
            // No creation is in doubt now: it would hold the serial key. So a name that is not there never will be.
            None => {
                let name = ConversationRef::UniqueName(about.conversation.to_string());
                match fetch_conversation(&self.twilio, call, &name).await? {
                    Some(found) => found.sid,
                    None => return Ok(Step::Done(Gone { sid: None })),
                }
            }
        };
        let done = Step::Done(Gone { sid: Some(sid.clone()) });
        match delete_conversation(&self.twilio, call, &sid).await? {
            Deletion::Deleted => Ok(done),
            // A conversation that is very new may be invisible to deletions too.
            Deletion::AlreadyAbsent => Ok(self.timing.unsettled(grave.known_for).map_or(done, Step::Again)),
        }
    }

    async fn record(
        &self,
        tx: &mut Record<'_>,
        about: &About,
        end: Conclusion<'_, Gone>,
    ) -> Result<(), Error> {
        let Conclusion::Succeeded(gone) = end else { return Ok(()) };
        let sid = gone.sid.as_ref().map(ConversationSid::as_str);
        let sql = include_str!("../sql/gone.sql");
        sqlx::query(sql).bind(about.conversation).bind(sid).execute(tx.connection()).await?;
        Ok(())
    }
}
