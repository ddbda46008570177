//! Several benches at once: most of a run is waiting for a lease.

use crate::sweep::Bench;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Visits every item on benches of its own, or those that `BACKLINE_SWEEP_ONLY` names by a part of their text, and says how
/// many were survived. `what` is the plural of an item.
///
/// # Errors
/// An item that was not survived, or a bench that cannot be made.
pub fn survive<I: Send + std::fmt::Display>(
    what: &str,
    threads: usize,
    mut items: Vec<I>,
    open: impl AsyncFn() -> anyhow::Result<Bench> + Sync,
    work: impl AsyncFn(&mut Bench, &I) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    if let Ok(only) = std::env::var("BACKLINE_SWEEP_ONLY") {
        items.retain(|item| item.to_string().contains(&only));
    }
    let (total, started) = (items.len(), Instant::now());
    let failed = in_parallel(threads.min(total), items, open, work)?;
    println!("{} of {total} {what} survived in {:.0?}", total - failed.len(), started.elapsed());
    anyhow::ensure!(
        failed.is_empty(),
        "{} of {total} {what} not survived:\n{}",
        failed.len(),
        failed.join("\n\n")
    );
    Ok(())
}

/// Runs `work` for every item, on `threads` benches at a time, each on a thread of its own. `open` makes a bench ready
/// for its first item. Returns what failed, with the item's name; a bench that met a failure is replaced.
///
/// # Errors
/// A bench cannot be made.
fn in_parallel<I: Send + std::fmt::Display>(
    threads: usize,
    items: Vec<I>,
    open: impl AsyncFn() -> anyhow::Result<Bench> + Sync,
    work: impl AsyncFn(&mut Bench, &I) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<Vec<String>> {
    let queue = Mutex::new(items.into_iter());
    let failed = Mutex::new(Vec::new());
    let shard = || -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut bench = None;
            loop {
                let Some(item) = queue.lock().unwrap_or_else(PoisonError::into_inner).next() else {
                    return Ok(());
                };
                let mut current = match bench.take() {
                    Some(bench) => bench,
                    None => open().await?,
                };
                match work(&mut current, &item).await {
                    Ok(()) => bench = Some(current),
                    Err(error) => {
                        let dir = current.stack().dir().display().to_string();
                        let text = format!("{item}: {error:#} (logs: {dir})");
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(text);
                    }
                }
            }
        })
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(shard)).collect();
        running.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => anyhow::bail!("a shard panicked"),
        })
    })?;
    Ok(failed.into_inner().unwrap_or_else(PoisonError::into_inner))
}
