//! A guest agent as an ordinary process, spoken to over socket pairs.

use std::fs::File;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use dayfly_guest_client::{AgentClient, AttachSpec, CallError, ExecSession};
use dayfly_guest_proto::{AgentToken, Entropy, GuestErrorCode, Identity, MachineId, copy_mark};
use dayfly_types::exec::{ExecCommand, ExecExit, ExecInfo};
use dayfly_types::exec::{ExecEnd, ExecEvent, ExecSpec};
use dayfly_types::{ExecId, SandboxId};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::net::UnixStream;

/// Long enough for a loaded machine, short enough to tell a hang.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The agent and the host's ends of its ports, which outlive any one conversation.
pub(crate) struct Guest {
    child: Child,
    pub(crate) control: StdStream,
    pub(crate) bulk: StdStream,
    /// Where the agent keeps its files, if the test did not give it a place.
    _directory: Option<TempDir>,
}

impl Guest {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut guest = Self::start_in(directory.path());
        guest._directory = Some(directory);
        guest
    }

    /// An agent that finds hooks and the busy file in this directory, and keeps logs there.
    pub(crate) fn start_in(directory: &Path) -> Self {
        let (control, control_guest) = StdStream::pair().unwrap();
        let (bulk, bulk_guest) = StdStream::pair().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_dayfly-guest"))
            .arg("--serve-stdio")
            .arg(directory)
            .stdin(Stdio::from(OwnedFd::from(control_guest)))
            .stdout(Stdio::from(OwnedFd::from(bulk_guest)))
            .spawn()
            .unwrap();
        control.set_nonblocking(true).unwrap();
        bulk.set_nonblocking(true).unwrap();
        Self {
            child,
            control,
            bulk,
            _directory: None,
        }
    }

    /// Opens a conversation. The tests' ports are one pair of sockets for all of them, so a former
    /// client that still reads would take bytes of the new one: drop it first.
    pub(crate) async fn connect(&self) -> AgentClient {
        let control = UnixStream::from_std(self.control.try_clone().unwrap()).unwrap();
        let bulk = UnixStream::from_std(self.bulk.try_clone().unwrap()).unwrap();
        AgentClient::connect(control, bulk, DEADLINE).await.unwrap()
    }

    /// Does to the agent's memory what a host does to a saved image: finds the one page of this
    /// mark and sets its flag.
    pub(crate) fn mark_as_copy(&self, nonce: &[u8; 32]) {
        let prefix = copy_mark::page_prefix(nonce);
        let pid = self.child.id();
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let memory = File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))
            .unwrap();
        let mut found = 0;
        for line in maps.lines().filter(|line| line.contains(" rw")) {
            let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
            let start = u64::from_str_radix(start, 16).unwrap();
            let end = u64::from_str_radix(end, 16).unwrap();
            for address in (start..end).step_by(copy_mark::PAGE_BYTES) {
                let mut page = [0; copy_mark::PAGE_BYTES];
                let is_read = memory.read_exact_at(&mut page, address).is_ok();
                if is_read && copy_mark::is_marked(&page, &prefix) {
                    let flag = address + copy_mark::FLAG_OFFSET as u64;
                    memory.write_all_at(&[copy_mark::FLAG_COPY], flag).unwrap();
                    found += 1;
                }
            }
        }
        assert_eq!(found, 1, "there is one page with the mark");
    }

    /// Whether a process of this number exists.
    pub(crate) fn is_alive(pid: u32) -> bool {
        ProcessFacts::read(pid).is_some_and(|facts| facts.state != "Z")
    }

    /// The memory that the agent itself holds.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/statm", self.child.id());
        let text = std::fs::read_to_string(path).unwrap();
        text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }

    /// Ends what execs left running: they outlive every conversation, and would this agent.
    fn kill_sessions(&mut self) {
        let agent = self.child.id();
        let processes: Vec<(u32, ProcessFacts)> = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(|pid| Some((pid, ProcessFacts::read(pid)?)))
            .collect();
        let children = processes.iter().filter(|(_, facts)| facts.parent == agent);
        let sessions: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        for (pid, facts) in &processes {
            // One that was just forked has no session of its own yet.
            if sessions.contains(&facts.session) || sessions.contains(pid) {
                let pid = Pid::from_raw((*pid).try_into().unwrap()).unwrap();
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

struct ProcessFacts {
    state: String,
    parent: u32,
    session: u32,
}

impl ProcessFacts {
    fn read(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit(')').next()?.split_whitespace();
        Some(Self {
            state: fields.next()?.to_owned(),
            parent: fields.next()?.parse().ok()?,
            session: fields.nth(1)?.parse().ok()?,
        })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.kill_sessions();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn identity() -> Identity {
    Identity {
        sandbox_id: SandboxId::parse("sb-local-0123456789abcdefghjkmnpqrs").unwrap(),
        hostname: "box".to_owned(),
        machine_id: MachineId::from_random([1; 16]),
        wall_clock_unix_nanos: 1_700_000_000_000_000_000,
        entropy: Entropy([2; 32]),
        agent_token: AgentToken::new("token"),
        event: None,
        reseed_user_space: false,
    }
}

/// Everything an exec said.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) exit: ExecExit,
}

impl Output {
    pub(crate) fn stdout_text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    pub(crate) fn stderr_text(&self) -> String {
        String::from_utf8(self.stderr.clone()).unwrap()
    }
}

/// An id that no other exec has.
pub(crate) fn new_id() -> ExecId {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    ExecId::parse(&format!("ex-test-{number}")).unwrap()
}

pub(crate) fn shell(line: &str) -> ExecSpec {
    let mut spec = ExecSpec::new(new_id(), ExecCommand::Shell(line.to_owned()));
    spec.user = Some("root".to_owned());
    spec
}

pub(crate) fn argv(words: &[&str]) -> ExecSpec {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    let mut spec = ExecSpec::new(new_id(), ExecCommand::Argv(words));
    spec.user = Some("root".to_owned());
    spec
}

pub(crate) async fn run(client: &AgentClient, spec: ExecSpec) -> Output {
    collect(client.exec(spec).await.unwrap()).await
}

pub(crate) async fn collect(mut session: ExecSession) -> Output {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    loop {
        match within(session.next()).await.unwrap().unwrap() {
            ExecEvent::Stdout(bytes) => stdout.extend_from_slice(&bytes),
            ExecEvent::Stderr(bytes) => stderr.extend_from_slice(&bytes),
            ExecEvent::Gap(gap) => panic!("{gap:?}"),
            ExecEvent::Exited(ExecEnd { exit, .. }) => {
                assert_eq!(within(session.next()).await.unwrap(), None);
                return Output {
                    stdout,
                    stderr,
                    exit,
                };
            }
        }
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("within the deadline")
}

/// Waits until a condition holds.
pub(crate) async fn eventually(mut condition: impl FnMut() -> bool) {
    within(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Bytes that a lost, doubled or moved block would change.
pub(crate) fn pattern(length: usize) -> Bytes {
    let mut state = 0x2545_F491_u32;
    let next = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    });
    next.take(length).collect::<Vec<u8>>().into()
}

/// A file with these bytes, and the command that prints it.
pub(crate) struct Printed {
    _directory: TempDir,
    pub(crate) path: String,
}

pub(crate) fn printed(bytes: &[u8]) -> Printed {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bytes");
    std::fs::write(&path, bytes).unwrap();
    Printed {
        path: path.to_str().unwrap().to_owned(),
        _directory: directory,
    }
}

/// A file that a command waits for, so that a test decides when it goes on.
pub(crate) struct Gate {
    _directory: TempDir,
    path: std::path::PathBuf,
}

impl Gate {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("open");
        Self {
            _directory: directory,
            path,
        }
    }

    /// The words that wait, for a shell.
    pub(crate) fn wait(&self) -> String {
        format!("until test -e {}; do sleep 0.01; done", self.path.display())
    }

    pub(crate) fn open(&self) {
        std::fs::write(&self.path, "").unwrap();
    }

    /// The words that open it, for a shell.
    pub(crate) fn touch(&self) -> String {
        format!("touch {}", self.path.display())
    }

    pub(crate) fn is_open(&self) -> bool {
        self.path.exists()
    }
}

pub(crate) fn assert_refused<T: std::fmt::Debug>(
    result: Result<T, CallError>,
    code: GuestErrorCode,
) {
    let Err(CallError::Refused(error)) = result else {
        panic!("not refused: {result:?}")
    };
    assert_eq!(error.code, code, "{error}");
}

/// Waits until the guest says what is wanted of an exec.
pub(crate) async fn until(
    client: &AgentClient,
    id: &ExecId,
    mut is_so: impl FnMut(&ExecInfo) -> bool,
) -> ExecInfo {
    within(async {
        loop {
            let info = client.describe_exec(id).await.unwrap();
            if is_so(&info) {
                return info;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

/// Everything of stderr, and stdout from an offset on.
pub(crate) fn from(stdout: u64) -> AttachSpec {
    AttachSpec {
        stdout: Some(stdout),
        ..AttachSpec::from_start()
    }
}
