//! What all promises stand on: each test has a migrated database of its own, and leaves none behind.

use backline_dev_cluster::pg::Session;
use backline_promises::{Database, Server};

#[tokio::test]
async fn each_test_has_a_migrated_database_of_its_own() -> anyhow::Result<()> {
    let server = Server::shared()?;
    let (first, second) = (Database::create(&server).await?, Database::create(&server).await?);
    sqlx::query("insert into backline.pause values ('workload', 'x', 'test', 'test')")
        .execute(first.pool())
        .await?;
    let sql = "select count(*) from backline.pause";
    let here: i64 = sqlx::query_scalar(sql).fetch_one(first.pool()).await?;
    let there: i64 = sqlx::query_scalar(sql).fetch_one(second.pool()).await?;
    assert_eq!((here, there), (1, 0));

    let name = first.name().to_owned();
    drop(first);
    let mut session = Session::connect(server.port(), "postgres")?;
    assert_eq!(session.value(&format!("select count(*) from pg_database where datname = '{name}'"))?, "0");
    Ok(())
}

#[tokio::test]
async fn an_own_server_is_killed_and_comes_back_with_every_commit() -> anyhow::Result<()> {
    let mut server = Server::own()?;
    let database = Database::create(&server).await?;
    sqlx::query("insert into backline.pause values ('workload', 'x', 'test', 'test')")
        .execute(database.pool())
        .await?;
    server.cluster()?.kill9()?;
    server.cluster()?.start_again()?;
    let kept: i64 =
        sqlx::query_scalar("select count(*) from backline.pause").fetch_one(database.pool()).await?;
    assert_eq!(kept, 1);
    assert!(Server::shared()?.cluster().is_err(), "nobody breaks a server that others use");
    Ok(())
}
