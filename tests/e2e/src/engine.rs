//! The engine process behind a sandbox, as the host sees it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::Daemon;

/// An engine's monitor answers at once or not at all.
const MONITOR_LIMIT: Duration = Duration::from_secs(5);

/// What the node has written down about a sandbox.
///
/// # Errors
/// When the node knows no such sandbox.
pub fn record(daemon: &Daemon, id: &str) -> Result<Value> {
    let path = daemon
        .path()
        .join("node/sandboxes")
        .join(id)
        .join("record.json");
    let text = std::fs::read(&path).with_context(|| format!("no record {}", path.display()))?;
    Ok(serde_json::from_slice(&text)?)
}

/// The process that runs a sandbox.
///
/// # Errors
/// When it has none.
pub fn engine_pid(daemon: &Daemon, id: &str) -> Result<i32> {
    let pid = record(daemon, id)?["process"]["pid"]
        .as_i64()
        .context("the record names no process")?;
    Ok(i32::try_from(pid)?)
}

/// The slot that a sandbox is in; `None` when it is in none.
///
/// # Errors
/// When the node knows no such sandbox.
pub fn slot(daemon: &Daemon, id: &str) -> Result<Option<u64>> {
    Ok(record(daemon, id)?["slot"].as_u64())
}

/// Where the files of a sandbox's engine are.
///
/// # Errors
/// When it is in no slot.
pub fn run_directory(daemon: &Daemon, id: &str) -> Result<PathBuf> {
    let slot = slot(daemon, id)?.context("the record names no slot")?;
    Ok(daemon.path().join(format!("node/slots/{slot}/run")))
}

/// How long the process has used a processor so far.
///
/// # Errors
/// When it is gone.
pub fn processor_time(pid: i32) -> Result<Duration> {
    Ok(dayfly_host::process::cpu_time(pid)?)
}

/// The engines of this node, by pid: those of sandboxes, those that are parked, and dead ones that
/// nobody has waited for.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn engines_of_node(daemon: &Daemon) -> Result<Vec<i32>> {
    let node = daemon.role_pid("node")?;
    let children = crate::processes::children(node)?;
    Ok(children
        .into_iter()
        .map(|(pid, _)| pid)
        .filter(|pid| name(*pid).starts_with("qemu"))
        .collect())
}

/// Whether there is no such process, not even a dead one.
#[must_use]
pub fn is_gone(pid: i32) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// Whether a process ended and nobody has taken notice.
#[must_use]
pub fn is_zombie(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
}

fn name(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// What the engine says about its processors: `running`, `paused` or another word of its own.
/// Only when no daemon talks to it: a monitor has one caller.
///
/// # Errors
/// When it does not answer.
pub fn monitor_status(run_directory: &std::path::Path) -> Result<String> {
    let stream = UnixStream::connect(run_directory.join("monitor.sock"))?;
    stream.set_read_timeout(Some(MONITOR_LIMIT))?;
    let mut writer = stream.try_clone()?;
    let mut lines = BufReader::new(stream).lines();
    let mut answer = |command: &str| -> Result<Value> {
        if !command.is_empty() {
            writeln!(writer, "{{\"execute\": \"{command}\"}}")?;
        }
        loop {
            let line = lines.next().context("the monitor was closed")??;
            let value: Value = serde_json::from_str(&line)?;
            if value.get("event").is_none() {
                return Ok(value);
            }
        }
    };
    answer("")?;
    answer("qmp_capabilities")?;
    let status = answer("query-status")?;
    match status["return"]["status"].as_str() {
        Some(word) => Ok(word.to_owned()),
        None => bail!("no status: {status}"),
    }
}
