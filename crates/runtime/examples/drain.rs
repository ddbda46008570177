//! scratch
use backline_failure::{Call, Failure, Mode, Resolution};
use backline_runtime::*;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
struct Noop;
impl Command for Noop {
    const KIND: &'static str = "bench.noop";
    const RECORDS: bool = false;
    const GUARDS: bool = false;
    type Input = serde_json::Value;
    type Output = serde_json::Value;
    fn spec(&self) -> KindSpec {
        KindSpec {
            keep_input: false,
            serial: Serial::Exclusive,
            ..KindSpec::new(Mode::Command, "bench:none").with_native_idempotency(Duration::from_secs(3600))
        }
    }
    async fn perform(&self, _: &Call, _: &serde_json::Value) -> Result<serde_json::Value, Failure> {
        Ok(serde_json::json!({"ok": true, "bytes": 1234}))
    }
    async fn resolve(
        &self,
        _: &Call,
        _: &Operation,
        _: &serde_json::Value,
        _: &[Evidence],
    ) -> Result<Resolution<serde_json::Value>, Failure> {
        Ok(Resolution::StillUnknown)
    }
}
#[derive(clap::Parser)]
struct Args {
    #[command(flatten)]
    config: WorkloadConfig,
    #[arg(long, default_value_t = 100000)]
    n: i64,
}
#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = <Args as clap::Parser>::parse();
    tracing_subscriber::fmt().with_env_filter(args.config.log.clone()).with_writer(std::io::stderr).init();
    let pool = sqlx::PgPool::connect(&args.config.database_url).await?;
    sqlx::query("truncate backline.operation, backline.operation_history, backline.operation_identity, backline.intake, backline.serial_hold, backline.ready_lane, backline.lease, backline.intake_mark").execute(&pool).await?;
    sqlx::query("insert into backline.intake(operation_id, kind, organization, operation_key, input, input_version, serial_key, priority, correlation_id) select backline.operation_id(o, 'bench.noop', g::text), 'bench.noop', o, g::text, jsonb_build_object('seq', g, 'blob', repeat(md5(g::text), 10)), 1, case when g % 2 = 0 then 's' || g end, 0, gen_random_uuid() from (select g, ('00000000-0000-0000-0000-'||lpad((1+g%50)::text,12,'0'))::uuid as o from generate_series(1, $1) g) x").bind(args.n).execute(&pool).await?;
    if std::env::var("READY").is_ok() {
        sqlx::query("insert into backline.operation_identity(id, kind) select operation_id, kind from backline.intake").execute(&pool).await?;
        sqlx::query("insert into backline.operation(id, kind, organization, operation_key, mode, state, due_at, serial_key, serial, input, correlation_id) select operation_id, kind, organization, operation_key, 'command', 'ready', requested_at, serial_key, 'exclusive', input, correlation_id from backline.intake").execute(&pool).await?;
        sqlx::query("insert into backline.ready_lane(kind, organization, priority, next_due) select kind, organization, 0, min(due_at) from backline.operation group by 1,2").execute(&pool).await?;
        sqlx::query("truncate backline.intake").execute(&pool).await?;
    }
    sqlx::query("vacuum analyze").execute(&pool).await?;
    let soft = CancellationToken::new();
    let w = tokio::spawn(
        Workload::new("bench", args.config.clone())
            .command(Noop)
            .run_until(soft.clone(), CancellationToken::new()),
    );
    let t = Instant::now();
    let mut last = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let n: i64 =
            sqlx::query_scalar("select count(*) from backline.operation_history").fetch_one(&pool).await?;
        if std::env::var("V").is_ok() {
            eprintln!("{:?} {n} +{}", t.elapsed(), n - last);
        }
        last = n;
        if n >= args.n || t.elapsed().as_secs() > 60 {
            break;
        }
    }
    println!("{} ops/s", args.n as f64 / t.elapsed().as_secs_f64());
    soft.cancel();
    println!("{:?}", w.await?);
    Ok(())
}
