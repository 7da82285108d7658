//! The execs of the fake guest. They belong to the guest, as those of a real one do: whoever reads
//! them may go and come back.

use std::collections::BTreeMap;

use dayfly_guest_proto::{ExecPage, GuestError, GuestErrorCode, Response};
use dayfly_types::ExecId;
use dayfly_types::exec::{ExecCommand, ExecExit, ExecInfo, ExecSpec, ExitReason, LogExtent};
use tokio::time::{Duration, Instant};

const FIRST_PID: u32 = 100;

#[derive(Debug, Clone, Default)]
pub(super) struct Execs {
    by_id: BTreeMap<ExecId, FakeExec>,
    started: u64,
}

#[derive(Debug, Clone)]
pub(super) struct FakeExec {
    number: u64,
    line: String,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) exit: Option<ExecExit>,
    deadline: Option<Instant>,
    is_service: bool,
}

impl Execs {
    /// Plays a command; one with the same id and words is not played twice.
    pub(super) fn start(&mut self, spec: &ExecSpec) -> Result<u32, GuestError> {
        let line = match &spec.command {
            ExecCommand::Argv(words) => words.join(" "),
            ExecCommand::Shell(line) => line.clone(),
        };
        if let Some(exec) = self.by_id.get(&spec.exec_id) {
            let is_same = exec.line == line;
            return is_same.then(|| exec.pid()).ok_or_else(|| {
                GuestError::new(GuestErrorCode::Exists, "another exec has this id")
            });
        }
        self.started += 1;
        let mut exec = FakeExec::play(line);
        exec.number = self.started;
        exec.is_service = spec.is_service;
        if exec.exit.is_none() {
            let timeout = spec.timeout_ms.map(Duration::from_millis);
            exec.deadline = timeout.map(|timeout| Instant::now() + timeout);
        }
        let pid = exec.pid();
        self.by_id.insert(spec.exec_id.clone(), exec);
        Ok(pid)
    }

    pub(super) fn find(&self, id: &ExecId) -> Result<&FakeExec, GuestError> {
        let missing = || GuestError::new(GuestErrorCode::NotFound, "no such exec");
        self.by_id.get(id).ok_or_else(missing)
    }

    pub(super) fn describe(&self, id: &ExecId) -> Result<Response, GuestError> {
        self.find(id).map(|exec| Response::Exec(exec.info(id)))
    }

    pub(super) fn list(&self, after: u64, limit: u32) -> Response {
        let listed = self.by_id.iter().filter(|(_, exec)| !exec.is_service);
        let mut execs: Vec<_> = listed
            .filter(|(_, exec)| exec.number > after)
            .map(|(id, exec)| exec.info(id))
            .collect();
        execs.sort_by_key(|exec| exec.number);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = execs.len() > limit;
        execs.truncate(limit);
        Response::Execs(ExecPage { execs, has_more })
    }

    pub(super) fn signal(&mut self, id: &ExecId, signal: i32) -> Result<Response, GuestError> {
        self.find(id)?;
        if let Some(exec) = self.by_id.get_mut(id) {
            exec.end(signal, ExitReason::Signaled);
        }
        Ok(Response::Done)
    }

    pub(super) fn forget(&mut self, id: &ExecId) -> Response {
        self.by_id.remove(id);
        Response::Done
    }

    /// How many run, services excepted.
    pub(super) fn running(&self) -> u32 {
        let running = self.by_id.values();
        let running = running.filter(|exec| exec.exit.is_none() && !exec.is_service);
        u32::try_from(running.count()).unwrap_or(u32::MAX)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.by_id.values().filter_map(|exec| exec.deadline).min()
    }

    /// Ends those whose time is over.
    pub(super) fn expire(&mut self, now: Instant) {
        for exec in self.by_id.values_mut() {
            if exec.deadline.is_some_and(|deadline| deadline <= now) {
                exec.end(9, ExitReason::TimedOut);
            }
        }
    }

    pub(super) fn allow_more_time(&mut self, more: Duration) {
        for deadline in self.by_id.values_mut().filter_map(|e| e.deadline.as_mut()) {
            *deadline += more;
        }
    }
}

impl FakeExec {
    /// The commands that this guest knows.
    fn play(line: String) -> Self {
        let (program, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let (stdout, stderr, code) = match program {
            "true" => (String::new(), String::new(), Some(0)),
            "exit" => (
                String::new(),
                String::new(),
                Some(rest.parse().unwrap_or(2)),
            ),
            "echo" => (format!("{rest}\n"), String::new(), Some(0)),
            // Of `! command -v PROGRAM || ...`: this guest has no programs.
            "!" => (String::new(), String::new(), Some(0)),
            "hang" => (String::new(), String::new(), None),
            _ => (
                String::new(),
                format!("{program}: command not found\n"),
                Some(127),
            ),
        };
        let exit = code.map(|code| ExecExit {
            code,
            signal: None,
            reason: ExitReason::Exited,
            limits_hit: Vec::new(),
        });
        Self {
            number: 0,
            line,
            stdout: stdout.into_bytes(),
            stderr: stderr.into_bytes(),
            exit,
            deadline: None,
            is_service: false,
        }
    }

    fn pid(&self) -> u32 {
        FIRST_PID.saturating_add(u32::try_from(self.number).unwrap_or(u32::MAX))
    }

    fn end(&mut self, signal: i32, reason: ExitReason) {
        self.deadline = None;
        self.exit.get_or_insert(ExecExit {
            code: 128 + signal,
            signal: Some(signal),
            reason,
            limits_hit: Vec::new(),
        });
    }

    fn info(&self, id: &ExecId) -> ExecInfo {
        let extent = |bytes: &[u8]| LogExtent {
            start: 0,
            end: bytes.len() as u64,
        };
        ExecInfo {
            exec_id: id.clone(),
            number: self.number,
            title: self.line.clone(),
            user: "agent".to_owned(),
            pid: self.pid(),
            started_unix_ms: 0,
            exit: self.exit.clone(),
            duration_ms: 1,
            is_terminal: false,
            takes_stdin: false,
            stdin_bytes: 0,
            stdout: extent(&self.stdout),
            stderr: extent(&self.stderr),
        }
    }
}
