//! `run_tx!`: repetitions (obligation D2; reliability P4; field case 43).

use anyhow::Result;
use backline_outbox::run_tx;
use sqlx::PgPool;
use std::sync::atomic::{AtomicU32, Ordering};

/// Fails in the server with this SQLSTATE while `left` counts down.
async fn fail(tx: &mut sqlx::PgConnection, left: &AtomicU32, code: &str) -> Result<(), sqlx::Error> {
    let failing = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    if failing {
        let sql = format!("do $$ begin raise exception 'on purpose' using errcode = '{code}'; end $$");
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(tx).await?;
    }
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn conflicts_repeat_the_whole_transaction(pool: PgPool) -> Result<()> {
    for code in ["40001", "40P01"] {
        let (left, runs) = (AtomicU32::new(2), AtomicU32::new(0));
        let result: Result<u32, sqlx::Error> = run_tx!(&pool, "test.conflict", |tx| async {
            sqlx::query("insert into backline.audit (actor, action, reason) values ('a', 'pause', 'b')")
                .execute(&mut *tx)
                .await?;
            fail(&mut *tx, &left, code).await?;
            Ok(runs.fetch_add(1, Ordering::Relaxed))
        });
        assert_eq!(result?, 0, "the body succeeded once");
    }
    let kept: i64 = sqlx::query_scalar("select count(*) from backline.audit").fetch_one(&pool).await?;
    assert_eq!(kept, 2, "each repetition started from nothing");
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn other_errors_are_not_repeated(pool: PgPool) -> Result<()> {
    let left = AtomicU32::new(1);
    let result: Result<(), sqlx::Error> =
        run_tx!(&pool, "test.other", |tx| async { fail(tx, &left, "23505").await });
    assert!(result.is_err());
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_killed_connection_repeats_the_whole_transaction(pool: PgPool) -> Result<()> {
    let left = AtomicU32::new(1);
    let result: Result<i64, sqlx::Error> = run_tx!(&pool, "test.killed", |tx| async {
        if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            sqlx::query("select pg_terminate_backend(pg_backend_pid())").execute(&mut *tx).await?;
        }
        sqlx::query_scalar("select 1::bigint").fetch_one(&mut *tx).await
    });
    assert_eq!(result?, 1);
    Ok(())
}
