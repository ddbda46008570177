//! Waking a sleeper after a commit, without a notification in every commit.
//!
//! A sleeper commits a row in `backline.sleeper`, polls once more, and then waits here; producers notify only while
//! such a row is live. A notification is a hint: whoever waits polls each second anyway.

use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// How long a declared sleep lasts without renewal; a crashed sleeper costs producers notifications for this long.
const ASLEEP_SECONDS: f64 = 10.0;
/// How often a silent connection is asked whether it is alive: with [`PING_LIMIT`] a half-open one is replaced in
/// less than 15 s (field case 35).
const PING_EVERY: Duration = Duration::from_secs(5);
const PING_LIMIT: Duration = Duration::from_secs(5);

/// Listens on one channel, on a connection of its own.
#[derive(Debug)]
pub struct Doorbell {
    pool: PgPool,
    channel: &'static str,
    listener: Uuid,
    rung: Arc<Notify>,
    listening: Arc<AtomicBool>,
    task: Option<JoinHandle<()>>,
}

impl Doorbell {
    /// Whoever sleeps must declare it again at least this often, or the bell goes silent between.
    pub const POLL_LIMIT: Duration = Duration::from_secs(5);

    /// Listens on `channel` (`backline_outbox` or `backline_intake`), on one connection of its own besides `pool`.
    #[must_use]
    pub fn listen(pool: &PgPool, channel: &'static str) -> Self {
        let mut bell = Self::polling(pool, channel);
        let (pool, rung, listening) = (pool.clone(), Arc::clone(&bell.rung), Arc::clone(&bell.listening));
        bell.task = Some(tokio::spawn(async move {
            loop {
                if let Err(error) = hear(&pool, channel, &rung, &listening).await {
                    tracing::warn!(channel, %error, "doorbell connection lost, replacing it; polling meanwhile");
                    metrics::counter!("backline_doorbell_replaced_total", "channel" => channel).increment(1);
                }
                listening.store(false, Ordering::Release);
                // What was committed while nobody listened rang for nobody.
                rung.notify_one();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }));
        bell
    }

    /// Never listens and never declares sleep: for connections through a transaction pooler, where LISTEN does not
    /// hold.
    #[must_use]
    pub fn polling(pool: &PgPool, channel: &'static str) -> Self {
        Self {
            pool: pool.clone(),
            channel,
            listener: Uuid::new_v4(),
            rung: Arc::default(),
            listening: Arc::default(),
            task: None,
        }
    }

    /// Declares that the caller found nothing to do. The caller must poll once more before it waits: a commit between
    /// its last look and this declaration rang for nobody.
    ///
    /// # Errors
    /// The database's error.
    pub async fn fall_asleep(&self) -> Result<(), sqlx::Error> {
        if self.listening.load(Ordering::Acquire) {
            sqlx::query_file!("sql/fall_asleep.sql", self.listener, self.channel, ASLEEP_SECONDS)
                .execute(&self.pool)
                .await?;
        }
        Ok(())
    }

    /// Waits for the bell, at most `limit`. Says whether it rang.
    pub async fn wait(&self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.rung.notified()).await.is_ok()
    }

    /// Takes the declaration back, so that no commit pays for a notification while there is work anyway.
    ///
    /// # Errors
    /// The database's error; the declaration then ends by itself after [`Doorbell::POLL_LIMIT`] twice over.
    pub async fn wake(&self) -> Result<(), sqlx::Error> {
        if self.task.is_some() {
            sqlx::query_file!("sql/wake.sql", self.listener).execute(&self.pool).await?;
        }
        Ok(())
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn hear(
    pool: &PgPool,
    channel: &str,
    rung: &Notify,
    listening: &AtomicBool,
) -> Result<(), sqlx::Error> {
    // A pool of its own, given up with the listener: dropping one says goodbye on its connection first, and a half-open
    // connection would keep its place in a shared pool for as long as the kernel believes in it.
    let own = PgPoolOptions::new().max_connections(1).acquire_timeout(PING_LIMIT);
    let own = own.connect_lazy_with(pool.connect_options().as_ref().clone());
    let mut listener = PgListener::connect_with(&own).await?;
    // A lost connection must show here, not be repaired in silence: notifications were missed.
    listener.eager_reconnect(false);
    listener.listen(channel).await?;
    listening.store(true, Ordering::Release);
    loop {
        match tokio::time::timeout(PING_EVERY, listener.try_recv()).await {
            Ok(received) => {
                if received?.is_some() {
                    rung.notify_one();
                } else {
                    return Err(sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into()));
                }
            }
            Err(_silent) => {
                let ping = sqlx::query("select 1").execute(&mut listener);
                match tokio::time::timeout(PING_LIMIT, ping).await {
                    Ok(answer) => {
                        answer?;
                    }
                    Err(_) => return Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
                }
            }
        }
    }
}
