//! The application: commits payments with their intent by plain SQL, and keeps its own record of what was acknowledged.

use anyhow::Context;
use backline_outbox::run_tx;
use serde_json::json;
use sqlx::PgPool;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use uuid::{Builder, Uuid};

/// Payments are spread over this, so that every fault meets work on its way.
const SPREAD: Duration = Duration::from_secs(15);
/// Payments whose commit is under way at a time.
const AT_ONCE: usize = 16;
/// Pause of the application before it asks a database again that did not answer.
const PAUSE: Duration = Duration::from_millis(200);

/// One payment, fixed before its first commit: a repetition is the same payment and the same event.
#[derive(Debug, Clone)]
pub(super) struct Payment {
    pub(super) id: String,
    pub(super) event: Uuid,
    pub(super) organization: Uuid,
    pub(super) minor: i64,
    pub(super) payee: String,
}

/// The application's record of acknowledged commits, in a file of its own.
#[derive(Debug)]
struct Accepted {
    file: Mutex<File>,
    count: watch::Sender<usize>,
}

/// What the application did.
#[derive(Debug)]
pub(super) struct Driver {
    pool: PgPool,
    accepted: Accepted,
    /// Commits that were repeated and found themselves done: their reply was lost.
    found_again: AtomicU64,
    record: PathBuf,
}

impl Driver {
    pub(super) fn new(pool: PgPool, dir: &Path) -> anyhow::Result<Driver> {
        let record = dir.join("accepted.txt");
        let file =
            File::create(&record).with_context(|| format!("{} cannot be written", record.display()))?;
        let accepted = Accepted { file: Mutex::new(file), count: watch::Sender::new(0) };
        Ok(Driver { pool, accepted, found_again: AtomicU64::new(0), record })
    }

    /// How many commits were acknowledged, as it rises.
    pub(super) fn progress(&self) -> watch::Receiver<usize> {
        self.accepted.count.subscribe()
    }

    pub(super) fn found_again(&self) -> u64 {
        self.found_again.load(Ordering::Relaxed)
    }

    /// The application's own table.
    pub(super) async fn prepare(&self) -> sqlx::Result<()> {
        sqlx::query(include_str!("create_payments.sql")).execute(&self.pool).await.map(drop)
    }

    /// Commits all payments, each until its commit is acknowledged.
    pub(super) async fn pay(self: Arc<Self>, payments: Vec<Payment>) -> anyhow::Result<()> {
        let gap = SPREAD / u32::try_from(payments.len().max(1)).unwrap_or(u32::MAX);
        let mut pace = tokio::time::interval(gap.max(Duration::from_micros(1)));
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let mut running = JoinSet::new();
        for payment in payments {
            pace.tick().await;
            let permit = Arc::clone(&room).acquire_owned().await?;
            let driver = Arc::clone(&self);
            running.spawn(async move {
                let _permit = permit;
                driver.pay_one(&payment).await
            });
        }
        while let Some(done) = running.join_next().await {
            done.context("driver")??;
        }
        Ok(())
    }

    async fn pay_one(&self, payment: &Payment) -> anyhow::Result<()> {
        loop {
            match self.commit(payment).await {
                Ok(()) => return self.note(payment),
                Err(sqlx::Error::Database(error))
                    if error.code().is_some_and(|code| code.starts_with("22")) =>
                {
                    return Err(error).context("emit_event refuses the demo's event");
                }
                // Down, starting, or the reply was lost: the same payment is committed again until it is acknowledged.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Business row and intent in one transaction; a repetition that finds its row was committed before.
    async fn commit(&self, payment: &Payment) -> sqlx::Result<()> {
        let payload = json!({
            "payment_id": payment.id, "authorization": "demo approval",
            "instruction": {
                "type": "transfer", "amount": {"minor": payment.minor, "currency": "eur"}, "destination": payment.payee,
            },
        });
        let (mut tried, mut found) = (false, false);
        let done = run_tx!(&self.pool, "demo_payment", |tx| async {
            let inserted = sqlx::query(include_str!("insert_payment.sql"))
                .bind(&payment.id)
                .bind(payment.organization)
                .bind(payment.minor)
                .bind(&payment.payee)
                .execute(&mut *tx)
                .await?;
            found = inserted.rows_affected() == 0;
            if !found {
                sqlx::query(include_str!("emit_payment.sql"))
                    .bind(payment.organization)
                    .bind(&payment.id)
                    .bind(&payload)
                    .bind(payment.event)
                    .execute(&mut *tx)
                    .await?;
            }
            tried = true;
            Ok::<_, sqlx::Error>(())
        });
        if done.is_ok() && tried && found {
            self.found_again.fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    fn note(&self, payment: &Payment) -> anyhow::Result<()> {
        let mut file = self.accepted.file.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(file, "{} {} {}", payment.id, payment.event, payment.minor)?;
        self.accepted.count.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Acknowledged payments with their event and amount, read back from the file.
    pub(super) fn accepted(&self) -> anyhow::Result<BTreeMap<String, (Uuid, i64)>> {
        let text = std::fs::read_to_string(&self.record)?;
        let line = |line: &str| {
            let mut words = line.split(' ');
            let (id, event, minor) =
                (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Some((id.to_owned(), (event, minor)))
        };
        text.lines().map(|text| line(text).with_context(|| format!("accepted.txt holds {text:?}"))).collect()
    }
}

/// The payments of a seed, over three organizations.
pub(super) fn payments(seed: u64, count: usize) -> Vec<Payment> {
    let organization = |n: u64| {
        let (high, low) = (mix(seed ^ n).to_be_bytes(), mix(seed ^ (n << 32)).to_be_bytes());
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&high);
        bytes[8..].copy_from_slice(&low);
        Builder::from_random_bytes(bytes).into_uuid()
    };
    let organizations = [organization(1), organization(2), organization(3)];
    let numbered = (0_u64..).zip(std::iter::repeat_n((), count));
    numbered
        .map(|(n, ())| {
            let drawn = mix(seed.wrapping_add(n));
            Payment {
                id: format!("pay_{seed}_{n:05}"),
                event: Uuid::now_v7(),
                organization: organizations[usize::try_from(drawn % 3).unwrap_or(0)],
                minor: 100 + i64::try_from((drawn >> 8) % 10_000).unwrap_or(0),
                payee: format!("acct_demo{:03}", (drawn >> 32) % 50),
            }
        })
        .collect()
}

/// SplitMix64: enough to make amounts differ, and the same for the same seed everywhere.
pub(super) fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::payments;

    #[test]
    fn a_seed_fixes_everything_but_the_event_ids() {
        let (one, two) = (payments(7, 30), payments(7, 30));
        let facts = |list: &[super::Payment]| -> Vec<_> {
            list.iter().map(|p| (p.id.clone(), p.organization, p.minor, p.payee.clone())).collect()
        };
        assert_eq!(facts(&one), facts(&two));
        let organizations: std::collections::BTreeSet<_> = one.iter().map(|p| p.organization).collect();
        assert_eq!(organizations.len(), 3);
        assert_ne!(facts(&one), facts(&payments(8, 30)));
    }
}
