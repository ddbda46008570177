//! A failover that loses commits loses no payment and repeats none.

use backline_promises::sweep::failover_to_a_stale_standby;

#[tokio::test]
async fn payments_survive_a_failover_to_a_stale_standby() -> anyhow::Result<()> {
    failover_to_a_stale_standby().await
}
