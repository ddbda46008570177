//! The database fails over to a copy that has not seen the last commits.

use crate::sweep::{Bench, must_hold, visit};
use crate::{Action, CrashPlan, Site, eventually};
use anyhow::Context;
use std::sync::mpsc;
use tokio::net::{TcpListener, TcpStream};

/// One payment is at the provider and others wait in the outbox when the standby stops to follow. The primary finishes
/// them all and dies; what it had recorded since is gone, sequences are rewound, and the processes reconnect to the
/// standby under the old address, as behind a virtual one.
///
/// # Errors
/// A promise is broken, or the standby is not adopted as another incarnation of the database.
pub async fn failover_to_a_stale_standby() -> anyhow::Result<()> {
    let mut bench = Bench::start(true, &[]).await?;
    visit::populate(&mut bench).await?;
    bench.member("worker")?.kill9()?;
    bench.forget_slices().await?;
    let site = Site { name: "stripe.request.after".to_owned(), nth: 1 };
    let stop = CrashPlan::new(site, Action::Stop, bench.parts().dir());
    bench.transfer("on-its-way", 700, "acct_payee").await?;
    bench.launch_until_fired("worker", &stop).await?;
    bench.member("relay")?.kill9()?;
    bench.pay().await?;

    let primary = bench.stack().server().cluster()?;
    let mut standby = primary.standby()?;
    standby.wait_caught_up(primary)?;
    let mut session = standby.session("postgres")?;
    session.run("alter system set primary_conninfo = ''")?;
    session.run("select pg_reload_conf()")?;
    eventually("the standby to stop following", async || {
        Ok(session.value("select count(*) from pg_stat_wal_receiver")? == "0")
    })
    .await?;

    bench.member("worker")?.resume()?;
    bench.member("relay")?.start()?;
    bench.settled().await.context("on the primary")?;
    let before = outcomes(&bench).await?;

    let primary = bench.stack().server().cluster()?;
    let port = primary.port();
    primary.kill9()?;
    standby.promote()?;
    forward(port, standby.port())?;
    eventually("the failover to be noticed", async || {
        let sql =
            "select i.timeline = c.timeline from backline.incarnation i, backline.current_incarnation() c";
        Ok(sqlx::query_scalar(sql).fetch_one(bench.pool()).await.unwrap_or(false))
    })
    .await?;
    let lost = before - outcomes(&bench).await?;
    bench.settled().await.context("on the promoted standby")?;
    anyhow::ensure!(lost > 0 || outcomes(&bench).await? >= before, "no commit was lost: nothing was shown");
    must_hold(&bench).await?;
    // The processes go before the server they use does.
    for name in ["worker", "relay"] {
        bench.member(name)?.kill9()?;
    }
    Ok(standby.stop()?)
}

async fn outcomes(bench: &Bench) -> anyhow::Result<i64> {
    Ok(sqlx::query_scalar("select count(*) from backline.operation_history").fetch_one(bench.pool()).await?)
}

/// Takes over a dead server's port and carries its connections to another one, until this process ends.
fn forward(from: u16, to: u16) -> anyhow::Result<()> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let run = || -> std::io::Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let listener = TcpListener::bind(("127.0.0.1", from)).await?;
                let _ = sender.send(Ok(()));
                loop {
                    let (mut client, _) = listener.accept().await?;
                    tokio::spawn(async move {
                        if let Ok(mut server) = TcpStream::connect(("127.0.0.1", to)).await {
                            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                        }
                    });
                }
            })
        };
        if let Err(error) = run() {
            let _ = sender.send(Err(error));
        }
    });
    Ok(receiver.recv().context("the forwarder did not start")??)
}
