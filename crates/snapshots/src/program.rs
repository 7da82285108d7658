//! Runs a program of the host with a deadline, and keeps the end of what it said.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// Lines of output that an error carries.
const TAIL_LINES: usize = 20;
/// A line longer than this is cut: programs that draw progress bars never end theirs.
const LINE_BYTES_MAX: usize = 1024;
/// How long output may still arrive after the program has ended. A daemon that it left behind may
/// hold the pipe open for ever.
const DRAIN_LIMIT: Duration = Duration::from_millis(500);
/// The daemon's own environment may carry secrets, so programs get a fixed one and these.
const INHERITED: [&str; 6] = [
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Why a program did not do its work. The last lines of its output are in the text, because they
/// are the only thing that says what went wrong.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("cannot start {program}; is it installed?")]
    Start {
        program: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot read the output of {program}")]
    Output {
        program: String,
        #[source]
        source: io::Error,
    },
    #[error("{program} failed ({status}); its last words:\n{tail}")]
    Failed {
        program: String,
        status: ExitStatus,
        tail: String,
    },
    #[error("{program} took longer than {limit:?}; its last words:\n{tail}")]
    TimedOut {
        program: String,
        limit: Duration,
        tail: String,
    },
}

/// A program to run, with its arguments.
#[derive(Debug)]
pub struct Program {
    name: String,
    arguments: Vec<OsString>,
    directory: Option<OsString>,
    limit: Duration,
}

impl Program {
    #[must_use]
    pub fn new(name: &str, limit: Duration) -> Self {
        Self {
            name: name.to_owned(),
            arguments: Vec::new(),
            directory: None,
            limit,
        }
    }

    #[must_use]
    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    #[must_use]
    pub fn arguments<I>(mut self, arguments: I) -> Self
    where
        I: IntoIterator<Item: AsRef<OsStr>>,
    {
        self.arguments.extend(
            arguments
                .into_iter()
                .map(|argument| argument.as_ref().to_owned()),
        );
        self
    }

    /// Where the program runs and where its temporary files go.
    #[must_use]
    pub fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.as_os_str().to_owned());
        self
    }

    /// Runs the program to its end and hands every line of its output to `on_line`.
    ///
    /// # Errors
    /// [`ProgramError`] when it cannot be started, fails or is too slow.
    ///
    /// # Cancel safety
    /// Dropping the future kills the program's process group.
    pub async fn run(self, mut on_line: impl FnMut(&str) + Send) -> Result<(), ProgramError> {
        let mut child = self.spawn()?;
        let group = ProcessGroup::of(&child);
        let mut tail = Tail::default();
        let outcome =
            tokio::time::timeout(self.limit, follow(&mut child, &mut tail, &mut on_line)).await;
        tail.finish(&mut on_line);
        match outcome {
            Ok(Ok(status)) => {
                group.disarm();
                if status.success() {
                    return Ok(());
                }
                Err(ProgramError::Failed {
                    program: self.name,
                    status,
                    tail: tail.text(),
                })
            }
            Ok(Err(source)) => Err(ProgramError::Output {
                program: self.name,
                source,
            }),
            Err(_) => Err(ProgramError::TimedOut {
                program: self.name,
                limit: self.limit,
                tail: tail.text(),
            }),
        }
    }

    /// Runs the program to its end and keeps its output only for an error.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub async fn run_quietly(self) -> Result<(), ProgramError> {
        self.run(|_| {}).await
    }

    fn spawn(&self) -> Result<Child, ProgramError> {
        let mut command = Command::new(&self.name);
        command
            .args(&self.arguments)
            .env_clear()
            .env("PATH", SEARCH_PATH)
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", "/root")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory).env("TMPDIR", directory);
        }
        command.spawn().map_err(|source| ProgramError::Start {
            program: self.name.clone(),
            source,
        })
    }
}

/// Reads both pipes until the child has ended.
async fn follow(
    child: &mut Child,
    tail: &mut Tail,
    on_line: &mut (impl FnMut(&str) + Send),
) -> io::Result<ExitStatus> {
    let mut stdout = child.stdout.take();
    let mut stderr = child.stderr.take();
    let mut out_bytes = vec![0; 8192];
    let mut err_bytes = vec![0; 8192];
    let mut ended: Option<ExitStatus> = None;
    let mut drain_until = None;
    while ended.is_none() || stdout.is_some() || stderr.is_some() {
        let drained = async {
            match drain_until {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            count = read_some(&mut stdout, &mut out_bytes), if stdout.is_some() => {
                tail.push(Pipe::Out, &out_bytes[..count?], on_line);
            }
            count = read_some(&mut stderr, &mut err_bytes), if stderr.is_some() => {
                tail.push(Pipe::Err, &err_bytes[..count?], on_line);
            }
            status = child.wait(), if ended.is_none() => {
                ended = Some(status?);
                drain_until = Some(tokio::time::Instant::now() + DRAIN_LIMIT);
            }
            () = drained => break,
        }
    }
    match ended {
        Some(status) => Ok(status),
        None => child.wait().await,
    }
}

/// Reads once, and closes the pipe at its end.
async fn read_some(
    pipe: &mut Option<impl AsyncRead + Unpin>,
    bytes: &mut [u8],
) -> io::Result<usize> {
    let Some(open) = pipe else {
        return std::future::pending().await;
    };
    let count = open.read(bytes).await?;
    if count == 0 {
        *pipe = None;
    }
    Ok(count)
}

/// Which of a program's outputs.
#[derive(Debug, Clone, Copy)]
enum Pipe {
    Out,
    Err,
}

/// The last lines of a program's output, both pipes together.
#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<String>,
    /// What has come of a line that is not complete, for each pipe.
    partial_out: Vec<u8>,
    partial_err: Vec<u8>,
}

impl Tail {
    fn push(&mut self, pipe: Pipe, bytes: &[u8], on_line: &mut impl FnMut(&str)) {
        for byte in bytes {
            let partial = self.partial(pipe);
            match byte {
                b'\n' | b'\r' => self.end_line(pipe, on_line),
                _ if partial.len() < LINE_BYTES_MAX => partial.push(*byte),
                _ => {}
            }
        }
    }

    fn finish(&mut self, on_line: &mut impl FnMut(&str)) {
        self.end_line(Pipe::Out, on_line);
        self.end_line(Pipe::Err, on_line);
    }

    fn partial(&mut self, pipe: Pipe) -> &mut Vec<u8> {
        match pipe {
            Pipe::Out => &mut self.partial_out,
            Pipe::Err => &mut self.partial_err,
        }
    }

    fn end_line(&mut self, pipe: Pipe, on_line: &mut impl FnMut(&str)) {
        let bytes = std::mem::take(self.partial(pipe));
        if bytes.is_empty() {
            return;
        }
        let line = String::from_utf8_lossy(&bytes).into_owned();
        on_line(&line);
        if self.lines.len() == TAIL_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(String::as_str).collect();
        lines.join("\n")
    }
}

/// Kills a whole process group unless it ended by itself.
#[derive(Debug)]
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        let raw = child.id().and_then(|id| i32::try_from(id).ok());
        Self(raw.and_then(Pid::from_raw))
    }

    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // The leader has not been reaped yet, so the number cannot belong to anybody else.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn shell(script: &str, limit: Duration) -> Program {
        Program::new("sh", limit).argument("-c").argument(script)
    }

    #[tokio::test]
    async fn failure_carries_the_last_twenty_lines() {
        let script = "i=0; while [ $i -lt 50 ]; do echo line-$i; i=$((i+1)); done; exit 3";
        let error = shell(script, LIMIT).run_quietly().await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("line-49") && text.contains("line-30"),
            "{text}"
        );
        assert!(!text.contains("line-29"), "{text}");
    }

    #[tokio::test]
    async fn lines_of_both_pipes_arrive() {
        let mut lines = Vec::new();
        shell("echo a; echo b >&2; printf c", LIMIT)
            .run(|line| lines.push(line.to_owned()))
            .await
            .unwrap();
        lines.sort();
        assert_eq!(lines, ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn environment_of_the_daemon_is_not_handed_on() {
        let mut lines = Vec::new();
        shell("env", LIMIT)
            .run(|line| lines.push(line.to_owned()))
            .await
            .unwrap();
        assert!(
            !lines.iter().any(|line| line.starts_with("CARGO_")),
            "{lines:?}"
        );
    }

    #[tokio::test]
    async fn slow_program_is_killed_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let script = "sleep 600 & echo $! > child; echo started; wait";
        let error = shell(script, Duration::from_millis(500))
            .directory(directory.path())
            .run_quietly()
            .await
            .unwrap_err();
        assert!(matches!(error, ProgramError::TimedOut { .. }), "{error}");
        let pid = std::fs::read_to_string(directory.path().join("child")).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        let deadline = std::time::Instant::now() + LIMIT;
        // A killed orphan stays a zombie until its new parent reaps it.
        while std::fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z ")) {
            assert!(
                std::time::Instant::now() < deadline,
                "the child is still there"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn missing_program_is_named() {
        let error = Program::new("no-such-program", LIMIT)
            .run_quietly()
            .await
            .unwrap_err();
        assert!(error.to_string().contains("no-such-program"));
    }
}
