//! `pickup`: idle, from before the producer's transaction to the handler's first line.

use super::bed::{Bed, begin, commit, organization};
use super::child::{Start, Worker};
use super::clock::now_us;
use super::emit;
use super::line::{Line, Runs, Target};
use super::plan::Plan;
use super::relay::{Running, sleepers};
use super::worker::Handler;
use backline_envelope::Payload;
use backline_outbox::NewOperation;
use sqlx::Connection;
use sqlx::postgres::{PgConnection, PgListener};
use std::time::Duration;
use tokio::sync::mpsc;

/// Past every latency worth the name; asking earlier would take part in the measurement.
const SETTLED: Duration = Duration::from_millis(25);
/// The two ways in are sampled in turn, this many at a time.
const BLOCK: usize = 20;

pub(super) async fn pickup(bed: &Bed, plan: Plan) -> anyhow::Result<Vec<Line>> {
    bed.reset().await?;
    bed.settle().await?;
    let running = Running::start(bed).await?;
    let start = Start { emulator: Some(&running.host), ..Start::new(Handler::Stamp) };
    let worker = Worker::start(bed, &start)?;
    let mut bare = Bare::start(bed).await?;
    let mut producer = bed.connection().await?;
    let (mut ceiling, mut hop, mut broker) = (Runs::default(), Runs::default(), Runs::default());
    let mut number = 0;
    for block in 0..=plan.samples.div_ceil(BLOCK) {
        for _ in 0..BLOCK {
            number += 1;
            let samples = [
                bare.sample().await?,
                ours(bed, &mut producer, number, false).await?,
                ours(bed, &mut producer, number, true).await?,
            ];
            // The first block warms connections, statement caches and the idle processors.
            if block > 0 {
                ceiling.push(samples[0]);
                hop.push(samples[1]);
                broker.push(samples[2]);
            }
        }
    }
    producer.close().await?;
    bare.end();
    worker.stop()?;
    running.stop().await?;
    let bare_note = |line: Line| line.peers(2.0, "notify and claim, p50");
    let mut lines = Vec::new();
    for (name, runs, most) in [("pickup_hop", &hop, 2.0), ("pickup_broker", &broker, 5.0)] {
        let p50 = Line::new(&format!("{name}_p50"), runs.median(), "ms")
            .limit(ceiling.median(), Target::AtMost(most));
        lines.push(bare_note(p50.spread(runs)));
        let p99 = Line::new(&format!("{name}_p99"), runs.part(0.99), "ms")
            .limit(runs.median(), Target::AtMost(4.0));
        let bare99 = ceiling.part(0.99);
        lines.push(p99.note(&format!("over its p50; bare p99 {bare99:.2} ms")));
    }
    Ok(lines)
}

/// Milliseconds until a sleeping worker's handler runs.
async fn ours(
    bed: &Bed,
    producer: &mut PgConnection,
    number: i64,
    through_broker: bool,
) -> anyhow::Result<f64> {
    let bells =
        if through_broker { &["backline_outbox", "backline_intake"][..] } else { &["backline_intake"][..] };
    for bell in bells {
        bed.until("everybody asleep", async || Ok(sleepers(bed, bell).await? > 0)).await?;
    }
    tokio::time::sleep(Duration::from_millis(rand::random_range(5..25))).await;
    let organization = organization(number);
    let key = format!("{number}{}", if through_broker { "-broker" } else { "-hop" });
    let mut event = emit::event(number)?;
    event.aggregate_id.clone_from(&key);
    let from = now_us();
    begin(producer).await?;
    if through_broker {
        backline_outbox::append(producer, &event).await?;
    } else {
        let operation = NewOperation::new("bench.stamp", organization, key.clone(), event.payload.clone());
        backline_outbox::enqueue(producer, &operation).await?;
    }
    commit(producer).await?;
    tokio::time::sleep(SETTLED).await;
    let mut to = None;
    let find = "select (output->>'at_us')::bigint from backline.operation_history where organization = $1 and operation_key = $2";
    while to.is_none() {
        to = sqlx::query_scalar::<_, i64>(find)
            .bind(organization)
            .bind(&key)
            .fetch_optional(&bed.pool)
            .await?;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(super::bed::real(to.unwrap_or(from) - from) / 1000.0)
}

/// A bare producer and a bare listener that claims: insert and NOTIFY in one transaction.
struct Bare {
    producer: PgConnection,
    picked: mpsc::Receiver<i64>,
    task: tokio::task::JoinHandle<anyhow::Result<()>>,
    payload: Payload,
}

const INSERT: &str = "insert into backline.operation (id, kind, organization, operation_key, mode, state, due_at, input, correlation_id) \
    values (gen_random_uuid(), 'bench.bare', $1, 'x', 'command', 'ready', clock_timestamp(), $2::jsonb, gen_random_uuid())";
const CLAIM: &str = "update backline.operation o set state = 'running', token = nextval('backline.claim_token'), attempt = attempt + 1 \
    from (select id from backline.operation where kind = 'bench.bare' and state = 'ready' and due_at <= now() order by due_at, id limit 1 for update skip locked) c \
    where o.id = c.id returning o.input::text";

impl Bare {
    async fn start(bed: &Bed) -> anyhow::Result<Self> {
        let mut listener = PgListener::connect_with(&bed.pool).await?;
        listener.listen("bench_bare").await?;
        let mut claimer = bed.connection().await?;
        let (sender, picked) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            loop {
                listener.recv().await?;
                let input: String = sqlx::query_scalar(CLAIM).fetch_one(&mut claimer).await?;
                std::hint::black_box(input);
                sender.send(now_us()).await?;
            }
        });
        Ok(Self { producer: bed.connection().await?, picked, task, payload: emit::event(1)?.payload })
    }

    async fn sample(&mut self) -> anyhow::Result<f64> {
        tokio::time::sleep(Duration::from_millis(rand::random_range(5..25))).await;
        let from = now_us();
        begin(&mut self.producer).await?;
        let insert = sqlx::query(INSERT).bind(organization(1)).bind(self.payload.as_str());
        insert.execute(&mut self.producer).await?;
        sqlx::query("select pg_notify('bench_bare', '')").execute(&mut self.producer).await?;
        commit(&mut self.producer).await?;
        let to = self.picked.recv().await.unwrap_or(from);
        Ok(super::bed::real(to - from) / 1000.0)
    }

    fn end(self) {
        self.task.abort();
    }
}
