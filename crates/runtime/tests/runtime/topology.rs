//! A worker declares what it reads, and reads what it declares.

use crate::support::{Running, config};
use anyhow::Result;
use backline_envelope::{DecodeError, Envelope};
use backline_runtime::{Consumer, Intent, SubscriptionSpec, Workload, WorkloadConfig};
use sqlx::PgPool;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(30);

struct Usual;

impl Consumer for Usual {
    const NAME: &'static str = "usual";
    const EVENTS: &'static [&'static str] = &["LetterApproved"];

    fn intents(&self, _event: &Envelope) -> Result<Vec<Intent>, DecodeError> {
        Ok(Vec::new())
    }
}

struct Filtered;

impl Consumer for Filtered {
    const NAME: &'static str = "filtered";
    const EVENTS: &'static [&'static str] = &["LetterApproved"];

    fn intents(&self, _event: &Envelope) -> Result<Vec<Intent>, DecodeError> {
        Ok(Vec::new())
    }

    fn subscription(&self, usual: SubscriptionSpec) -> SubscriptionSpec {
        SubscriptionSpec { filter: Some("attributes.region = \"eu\"".to_owned()), dead_letter: None, ..usual }
    }
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn the_declaration_follows_the_topic_and_the_consumer(pool: PgPool) -> Result<()> {
    let config = WorkloadConfig { topic: "letters".to_owned(), ..config(&pool, LEASE)? };
    let declared = Workload::new("post", config).consumer(Usual).consumer(Filtered).topology();
    assert_eq!(declared.declared_by, "post");
    let [usual, filtered] = declared.subscriptions.as_slice() else { anyhow::bail!("{declared:?}") };
    assert_eq!(*usual, SubscriptionSpec::of_consumer("letters", "usual"));
    assert_eq!(filtered.subscription, "letters.filtered");
    assert_eq!(filtered.filter.as_deref(), Some("attributes.region = \"eu\""));
    assert_eq!(declared.all_topics(), ["letters", "letters.usual.dead"]);
    Ok(())
}

#[sqlx::test(migrations = false)]
async fn asked_for_its_declaration_a_worker_touches_no_database_and_ends(pool: PgPool) -> Result<()> {
    // Without a schema it would refuse to run.
    let config = WorkloadConfig { topology: true, ..config(&pool, LEASE)? };
    Running::start(Workload::new("post", config).consumer(Usual)).stop().await
}
