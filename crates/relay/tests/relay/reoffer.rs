//! Nothing is lost behind the broker: unsealed events are offered again (architecture, section 5).

use crate::support::{PARKED, PUBLISHED, Setup, drain, id_of, next};
use anyhow::Result;
use sqlx::PgPool;
use uuid::Uuid;

async fn require(setup: &Setup, after: &'static str) -> Result<()> {
    sqlx::query("insert into backline.required_consumer values ('ThingChanged', 'books', $1::interval)")
        .bind(after)
        .execute(&setup.pool)
        .await?;
    Ok(())
}

async fn seal(setup: &Setup, id: Uuid) -> Result<()> {
    sqlx::query("insert into backline.seal (event_id, consumer) values ($1, 'books')")
        .bind(id)
        .execute(&setup.pool)
        .await?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn an_event_that_nobody_sealed_comes_again_with_the_same_id_and_bytes(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    require(&setup, "500 ms").await?;
    let ids = setup.emit_many(2).await?;
    let relay = setup.start(Setup::config())?;
    let mut reader = setup.read();
    let first = drain(&mut reader, 2).await?;
    seal(&setup, ids[0]).await?;
    let again = next(&mut reader).await?;
    assert_eq!(id_of(&again)?, ids[1]);
    assert!(first.contains(&(ids[1], again.data.clone())));
    again.ack();
    seal(&setup, ids[1]).await?;
    setup.settles(PUBLISHED, 2).await?;
    relay.stop().await?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn after_enough_offers_an_event_is_parked_with_its_consumer_named(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    require(&setup, "50 ms").await?;
    setup.emit_many(1).await?;
    let mut config = Setup::config();
    config.max_offers = 2;
    let relay = setup.start(config)?;
    drain(&mut setup.read(), 3).await?;
    setup.settles(PARKED, 1).await?;
    let reason: String =
        sqlx::query_scalar("select parked_reason from backline.outbox").fetch_one(&setup.pool).await?;
    assert!(reason.contains("books"), "{reason}");
    relay.stop().await?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn events_from_before_the_requirement_are_not_owed(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    setup.emit_many(1).await?;
    let relay = setup.start(Setup::config())?;
    let mut reader = setup.read();
    drain(&mut reader, 1).await?;
    setup.settles(PUBLISHED, 1).await?;
    require(&setup, "1 ms").await?;
    let ids = setup.emit_many(1).await?;
    // The second event is offered again and again; the first never comes back between.
    for (id, _) in drain(&mut reader, 3).await? {
        assert_eq!(id, ids[0]);
    }
    relay.stop().await?;
    Ok(())
}
