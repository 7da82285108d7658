//! Execs of a sandbox as the public API shows them.

use dayfly_api::{Advice, ExecExitEvent, Process, StreamExtent};
use dayfly_types::exec::{ExecEnd, ExecExit, ExecInfo, LogExtent};

use crate::time::rfc3339;

pub(crate) fn process(report: ExecInfo) -> Process {
    let extent = |log: LogExtent| StreamExtent {
        start: log.start,
        end: log.end,
    };
    let exit = report.exit.as_ref();
    let state = if exit.is_some() { "exited" } else { "running" };
    Process {
        exec_id: report.exec_id.to_string(),
        title: report.title,
        user: report.user,
        pid: report.pid,
        started_at: rfc3339(report.started_unix_ms),
        state: state.to_owned(),
        exit_code: exit.map(|exit| exit.code),
        signal: exit.and_then(|exit| exit.signal),
        reason: exit.map(|exit| exit.reason.as_str().to_owned()),
        limits_hit: exit.map(limits_hit).unwrap_or_default(),
        duration_ms: report.duration_ms,
        terminal: report.is_terminal,
        takes_stdin: report.takes_stdin,
        stdin_bytes: report.stdin_bytes,
        stdout: extent(report.stdout),
        stderr: extent(report.stderr),
    }
}

pub(crate) fn limits_hit(exit: &ExecExit) -> Vec<String> {
    let words = exit.limits_hit.iter().filter_map(|kind| kind.as_str());
    words.map(str::to_owned).collect()
}

pub(crate) fn exit_event(end: &ExecEnd) -> ExecExitEvent {
    let exit = &end.exit;
    ExecExitEvent {
        exit_code: exit.code,
        reason: exit.reason.as_str().to_owned(),
        signal: exit.signal,
        duration_ms: end.duration_ms,
        limits_hit: limits_hit(exit),
        advice: Advice::default(),
    }
}
