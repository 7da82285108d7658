//! The frame of every bench: a daemon to measure, and nothing left of the run at its end.

use std::path::Path;

use anyhow::{Result, bail};
use dayfly_installation::runtime::stop_on_signal;

use crate::args::BenchArguments;
use crate::daemon::BenchDaemon;
use crate::mark::Mark;

/// Measures on the daemon of a directory, or on one of the bench's own. Whether the work succeeds,
/// fails or a signal stops it, what it marked is deleted and a daemon of its own is stopped.
pub(crate) async fn on_daemon<T>(
    path: &Path,
    work: impl AsyncFnOnce(&BenchDaemon, &Mark) -> Result<T>,
) -> Result<T> {
    let stop = stop_on_signal()?;
    let mark = Mark::draw()?;
    let daemon = tokio::select! {
        daemon = BenchDaemon::find_or_start(path) => daemon?,
        () = stop.cancelled() => bail!("stopped by a signal"),
    };
    let outcome = tokio::select! {
        outcome = work(&daemon, &mark) => outcome,
        () = stop.cancelled() => Err(anyhow::anyhow!("stopped by a signal")),
    };
    let cleaned = mark.delete_all(daemon.client()).await;
    let stopped = daemon.stop().await;
    let found = outcome?;
    cleaned?;
    stopped?;
    Ok(found)
}

/// Runs a bench of so many samples on a daemon.
pub(crate) async fn of_n<T>(
    arguments: &BenchArguments,
    measure: impl AsyncFnOnce(&BenchDaemon, &Mark, &BenchArguments) -> Result<T>,
) -> Result<T> {
    if arguments.n == 0 {
        bail!("--n must be at least 1");
    }
    on_daemon(&arguments.data_dir, async |daemon, mark| {
        measure(daemon, mark, arguments).await
    })
    .await
}
