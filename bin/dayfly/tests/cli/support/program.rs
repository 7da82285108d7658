//! The built program, run in an environment of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};

use super::{FakeServer, within};

/// The program with a home directory that holds nothing.
pub(crate) struct Program {
    pub(crate) home: tempfile::TempDir,
    executable: PathBuf,
    variables: Vec<(String, String)>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Finished {
    pub(crate) fn stdout(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("standard output is text")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).expect("standard output is one JSON document")
    }
}

/// A run that has not ended.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) stderr: BufReader<ChildStderr>,
    said: String,
}

impl Program {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory for tests");
        Self {
            home,
            executable: env!("CARGO_BIN_EXE_dayfly").into(),
            variables: Vec::new(),
        }
    }

    pub(crate) fn at(server: &FakeServer) -> Self {
        let url = server.url();
        Self::new()
            .with("DAYFLY_API_URL", &url)
            .with("DAYFLY_API_KEY", FakeServer::KEY)
    }

    /// A copy of the program in another place.
    pub(crate) fn running(mut self, executable: &Path) -> Self {
        self.executable = executable.to_owned();
        self
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .args(args)
            .env_clear()
            .env("HOME", self.home.path())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Finished {
        let output = within("the program ends", self.command(args).output()).await;
        let output = output.expect("the program starts");
        Finished {
            status: output.status.code().expect("the program ends by itself"),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).expect("standard error is text"),
        }
    }

    pub(crate) async fn run_with_input(&self, args: &[&str], input: &[u8]) -> Finished {
        let mut running = self.start_with(args, Stdio::piped());
        let mut stdin = running
            .child
            .stdin
            .take()
            .expect("standard input is a pipe");
        stdin
            .write_all(input)
            .await
            .expect("the program reads its input");
        drop(stdin);
        running.finish().await
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        self.start_with(args, Stdio::null())
    }

    /// Starts it with an input that the test writes to.
    pub(crate) fn start_with_input(&self, args: &[&str]) -> Running {
        self.start_with(args, Stdio::piped())
    }

    fn start_with(&self, args: &[&str], stdin: Stdio) -> Running {
        let mut child = self
            .command(args)
            .stdin(stdin)
            .spawn()
            .expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("standard error is a pipe"));
        Running {
            child,
            stderr,
            said: String::new(),
        }
    }
}

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }

    /// Waits until the program has said `words`.
    pub(crate) async fn hear(&mut self, words: &str) {
        while !self.said.contains(words) {
            let mut line = String::new();
            let count = within(words, self.stderr.read_line(&mut line)).await;
            assert_ne!(
                count.expect("standard error is text"),
                0,
                "never said {words:?}"
            );
            self.said.push_str(&line);
        }
    }

    pub(crate) async fn finish(mut self) -> Finished {
        let mut stdout = Vec::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            within("standard output ends", pipe.read_to_end(&mut stdout))
                .await
                .expect("readable");
        }
        let reading = self.stderr.read_to_string(&mut self.said);
        within("standard error ends", reading)
            .await
            .expect("readable");
        let status = within("the program ends", self.child.wait())
            .await
            .expect("it is a child");
        let status = status.code().expect("the program ends by itself");
        Finished {
            status,
            stdout,
            stderr: self.said,
        }
    }
}

pub(super) fn send(child: &Child, signal: Signal) {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let id = id.and_then(Pid::from_raw).expect("the program still runs");
    kill_process(id, signal).expect("the signal is sent");
}

pub(crate) fn write_with_mode(path: &Path, text: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, text).expect("writable");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("owned");
}
