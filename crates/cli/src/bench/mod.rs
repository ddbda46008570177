//! `backline bench`: how fast this build is here, over what bare SQL reaches on the same tables at the same time.

mod backlog;
mod bare_cycle;
mod bare_fold;
mod bed;
mod bumps;
mod child;
mod clock;
mod converge;
mod cost;
mod cycle;
mod emit;
mod held;
mod line;
mod path;
mod pickup;
mod plan;
mod provider;
mod relay;
mod worker;

pub(crate) use worker::{WorkerArgs, run as work};

use anyhow::Context;
use bare_cycle::Shape;
use bed::Bed;
use line::Line;
use plan::Plan;
use std::io::Write;

/// Settings of a measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Only these lines; may be given more than once. Names: emit, append_bulk, relay, cycle,
    /// `cycle_own_tx`, converge, path, pickup, backlog, `held_snapshot`, cost.
    #[arg(long)]
    only: Vec<String>,
    /// Fewer rows and runs: for a look, not for a statement.
    #[arg(long)]
    quick: bool,
    /// Runs behind each median; ceiling and product alternate.
    #[arg(long)]
    runs: Option<usize>,
    /// Empty the tables of schema backline even if the database is not named after the bench.
    #[arg(long)]
    yes: bool,
    /// Exit code 1 when a line misses its target.
    #[arg(long)]
    strict: bool,
}

/// The measurements, in order.
const FAMILIES: [&str; 11] = [
    "emit",
    "append_bulk",
    "relay",
    "cycle",
    "cycle_own_tx",
    "converge",
    "path",
    "pickup",
    "backlog",
    "held_snapshot",
    "cost",
];

/// Measures and prints; `false` when a line missed its target and `--strict` was asked for.
pub(crate) async fn run(url: Option<&str>, args: &BenchArgs, json: bool) -> anyhow::Result<bool> {
    let url = url.context("DATABASE_URL (or --database-url) is not set")?;
    if let Some(unknown) = args.only.iter().find(|name| !FAMILIES.contains(&name.as_str())) {
        anyhow::bail!("--only {unknown}: not one of {}", FAMILIES.join(", "));
    }
    let bed = Bed::open(url, args.yes).await?;
    let plan = Plan::new(args.quick, args.runs);
    let mut printer = Printer { json, missed: 0 };
    printer.print(machine(&bed).await?);
    let mut shape = None;
    for family in FAMILIES {
        if !args.only.is_empty() && !args.only.iter().any(|name| name == family) {
            continue;
        }
        if shape.is_none() && matches!(family, "cycle" | "path" | "cost") {
            shape = Some(cycle::best(&bed, plan.rows).await?);
        }
        let best = shape.unwrap_or(Shape { batch: 500, connections: 2, lean: false });
        let lines = family_lines(&bed, plan, best, family)
            .await
            .with_context(|| format!("{family} (last words may be in {})", child::log("*").display()))?;
        lines.into_iter().for_each(|line| printer.print(line));
    }
    printer.print(machine(&bed).await?);
    bed.reset().await?;
    Ok(!args.strict || printer.missed == 0)
}

async fn family_lines(bed: &Bed, plan: Plan, shape: Shape, family: &str) -> anyhow::Result<Vec<Line>> {
    Ok(match family {
        "emit" => vec![emit::emit(bed, plan, false).await?, emit::emit(bed, plan, true).await?],
        "append_bulk" => vec![emit::append_bulk(bed, plan).await?],
        "relay" => vec![relay::relay(bed, plan).await?],
        "cycle" => vec![cycle::cycle(bed, plan, shape).await?],
        "cycle_own_tx" => vec![cycle::own_tx(bed, plan).await?],
        "converge" => converge::converge(bed, plan).await?,
        "path" => vec![path::path(bed, plan, shape).await?],
        "pickup" => pickup::pickup(bed, plan).await?,
        "backlog" => vec![backlog::backlog(bed, plan).await?],
        "held_snapshot" => vec![held::claims(bed, plan).await?, held::relay(bed, plan).await?],
        _ => cost::cost(bed, plan, shape).await?,
    })
}

/// What a reader must know to judge the rest.
async fn machine(bed: &Bed) -> anyhow::Result<Line> {
    let settings: String = sqlx::query_scalar(
        "select string_agg(name || '=' || current_setting(name), ' ' order by name) from pg_settings \
         where name in ('server_version', 'fsync', 'synchronous_commit', 'shared_buffers', 'max_wal_size')",
    )
    .fetch_one(&bed.pool)
    .await?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let minute = load.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN);
    Ok(Line::new("machine", minute, "load")
        .note(&format!("load average of a minute; {cores} cores; {settings}")))
}

/// One line as soon as it is known: a full run takes a while.
struct Printer {
    json: bool,
    missed: usize,
}

impl Printer {
    fn print(&mut self, line: Line) {
        self.missed += usize::from(line.missed);
        let text = if self.json {
            serde_json::to_string(&line).unwrap_or_default()
        } else {
            let [name, value, unit, ceiling, ratio, spread, note] = line.row();
            format!("{name:<22} {value:>9} {unit:<11} {ceiling:>9} {ratio:>6}  {spread:<17} {note}")
        };
        let mut out = std::io::stdout().lock();
        // A reader that went away is not our failure.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }
}
