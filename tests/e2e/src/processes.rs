//! Facts about processes, from `/proc`.

use std::fs;

use anyhow::{Context, Result};

/// Children of a process, by pid, with their command lines.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn children(parent: i32) -> Result<Vec<(i32, String)>> {
    let mut found = Vec::new();
    for pid in dayfly_host::process::all_pids()? {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        // The name in parentheses may hold anything; the parent is the second field behind it.
        let Some((_, rest)) = stat.rsplit_once(')') else {
            continue;
        };
        if rest.split_whitespace().nth(1) == Some(&parent.to_string()) {
            found.push((pid, command_line(pid)));
        }
    }
    Ok(found)
}

/// The command line, words separated by spaces. Empty when the process is gone.
#[must_use]
pub fn command_line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes)
        .trim_end_matches('\0')
        .replace('\0', " ")
}

/// Resident memory in KiB, without pages of files: what the process itself costs.
///
/// # Errors
/// When the process is gone.
pub fn anonymous_kib(pid: i32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find(|line| line.starts_with("RssAnon:"))
        .context("no RssAnon")?;
    Ok(line
        .split_whitespace()
        .nth(1)
        .context("no figure")?
        .parse()?)
}
