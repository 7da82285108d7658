//! From a spec to a running process.
//!
//! The agent only forks; everything that could block on a path of the guest (entering a directory,
//! executing a file) happens in the child, so that a hanging file system cannot hang the agent.

use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use dayfly_guest_proto::{GuestError, GuestErrorCode};
use dayfly_types::exec::{ExecCommand, ExecSpec, StdinMode};
use dayfly_types::limits::EXEC_SPEC_BYTES_MAX;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::process::{Pid, ioctl_tiocsctty};

use super::terminal::{self, Terminal};
use crate::account::Account;
use crate::cgroup::ExecGroup;
use crate::machine::Machine;
use crate::poller::{Poller, Source};
use crate::sys;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The kernel refuses one argument of 128 KiB; longer shell lines become a script file.
const SHELL_ARGUMENT_BYTES_MAX: usize = 96 << 10;
/// What shells use for a command that was found and could not be run, and for one not found.
const EXIT_NOT_EXECUTABLE: i32 = 126;
const EXIT_NOT_FOUND: i32 = 127;
/// What a process can write before the agent must read. More than the kernel's own 64 KiB, because
/// each turn of the agent costs the same however much it moves.
const PIPE_BYTES: usize = 256 << 10;

/// Everything a child needs, made before the fork.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    command: Command,
    program: String,
    account: &'a Account,
    entrance: Option<PathBuf>,
    directory: Option<&'a str>,
    has_terminal: bool,
    script: Option<PathBuf>,
}

#[derive(Debug)]
pub(super) struct Spawned {
    pub(super) pid: Pid,
    /// `None` when the process reads nothing.
    pub(super) stdin: Option<Source>,
    pub(super) stdout: Source,
    /// `None` with a terminal, where everything is stdout.
    pub(super) stderr: Option<Source>,
    pub(super) script: Option<PathBuf>,
}

/// Both ends of the streams of a process.
#[derive(Debug)]
struct Streams {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: Option<OwnedFd>,
    theirs: [OwnedFd; 3],
}

/// Refuses a spec that no process could be started from.
pub(super) fn check(spec: &ExecSpec) -> Result<(), GuestError> {
    let invalid = |text: &str| Err(GuestError::new(GuestErrorCode::Invalid, text));
    let texts: Vec<&str> = match &spec.command {
        ExecCommand::Argv(argv) => argv.iter().map(String::as_str).collect(),
        ExecCommand::Shell(line) => vec![line],
    };
    if texts.first().is_none_or(|program| program.is_empty()) {
        return invalid("the command is empty");
    }
    let pairs = || {
        spec.env
            .iter()
            .flat_map(|(key, value)| [key.as_str(), value.as_str()])
    };
    if texts
        .iter()
        .copied()
        .chain(pairs())
        .chain(spec.cwd.as_deref())
        .any(|t| t.contains('\0'))
    {
        return invalid("the command or its environment holds a zero byte");
    }
    if spec
        .env
        .keys()
        .any(|key| key.is_empty() || key.contains('='))
    {
        return invalid("a name in the environment is empty or holds an equals sign");
    }
    let bytes: usize = texts.iter().copied().chain(pairs()).map(str::len).sum();
    if bytes > EXEC_SPEC_BYTES_MAX {
        return invalid("the command and its environment are too long");
    }
    Ok(())
}

impl<'a> Plan<'a> {
    pub(super) fn new(
        spec: &'a ExecSpec,
        account: &'a Account,
        group: Option<&ExecGroup>,
        machine: &Machine,
        number: u64,
    ) -> io::Result<Self> {
        let mut script = None;
        let (program, arguments) = match &spec.command {
            ExecCommand::Argv(argv) => (argv[0].clone(), argv[1..].to_vec()),
            ExecCommand::Shell(line) if line.len() < SHELL_ARGUMENT_BYTES_MAX => {
                (shell(), vec!["-c".to_owned(), line.clone()])
            }
            ExecCommand::Shell(line) => {
                let path = machine.runtime_directory.join(format!("script-{number}"));
                write_script(&path, line, account)?;
                let argument = path.to_string_lossy().into_owned();
                script = Some(path);
                (shell(), vec![argument])
            }
        };
        let mut command = Command::new(&program);
        command
            .args(arguments)
            .env_clear()
            .envs(base_environment(account))
            .envs(&machine.defaults.environment)
            .envs(spec.terminal.map(|_| ("TERM", terminal::TERM)))
            .envs(&spec.env);
        let entrance = group.map(ExecGroup::entrance);
        let directory = spec.cwd.as_deref();
        Ok(Self {
            command,
            program,
            account,
            entrance,
            directory,
            has_terminal: spec.terminal.is_some(),
            script,
        })
    }

    /// Forks. The child enters its group, becomes the user and executes the command.
    pub(super) fn launch(mut self, spec: &ExecSpec, poller: &Poller) -> io::Result<Spawned> {
        let streams = Streams::open(spec, self.account)?;
        let watch = |descriptor: OwnedFd| {
            rustix::io::ioctl_fionbio(&descriptor, true)?;
            poller.watch(descriptor)
        };
        let stdin = streams.stdin.map(watch).transpose()?;
        let stdout = watch(streams.stdout)?;
        let stderr = streams.stderr.map(watch).transpose()?;
        match sys::fork()? {
            sys::Fork::Parent(pid) => Ok(Spawned {
                pid,
                stdin,
                stdout,
                stderr,
                script: self.script,
            }),
            sys::Fork::Child => self.run(streams.theirs),
        }
    }

    fn run(&mut self, streams: [OwnedFd; 3]) -> ! {
        let [stdin, stdout, stderr] = streams;
        let attached = rustix::stdio::dup2_stdin(&stdin)
            .and_then(|()| rustix::stdio::dup2_stdout(&stdout))
            .and_then(|()| rustix::stdio::dup2_stderr(&stderr));
        if attached.is_err() {
            sys::exit_now(EXIT_NOT_EXECUTABLE);
        }
        if let Err((what, error)) = self.prepare() {
            complain(&format!("dayfly: cannot {what}: {}", plain(&error)));
            sys::exit_now(EXIT_NOT_EXECUTABLE);
        }
        let error = self.command.exec();
        if error.kind() == io::ErrorKind::NotFound {
            complain(&format!("{}: command not found", self.program));
            sys::exit_now(EXIT_NOT_FOUND);
        }
        complain(&format!("{}: {}", self.program, plain(&error)));
        sys::exit_now(EXIT_NOT_EXECUTABLE);
    }

    fn prepare(&self) -> Result<(), (String, io::Error)> {
        let step = |what: &str, result: io::Result<()>| result.map_err(|e| (what.to_owned(), e));
        sys::unblock_all();
        if let Some(entrance) = &self.entrance {
            step("enter the control group", fs::write(entrance, "0"))?;
        }
        // The agent itself must never be chosen when memory runs out, its children may be.
        let _ = fs::write("/proc/self/oom_score_adj", "0");
        step(
            "start a session",
            rustix::process::setsid().map(drop).map_err(Into::into),
        )?;
        if self.has_terminal {
            let taken = ioctl_tiocsctty(rustix::stdio::stdout());
            step("take the terminal", taken.map_err(Into::into))?;
        }
        step("become the user", self.account.assume())?;
        match self.directory {
            Some(directory) => step(
                &format!("enter {directory}"),
                std::env::set_current_dir(directory),
            ),
            None => {
                let places = [&self.account.directory, &self.account.home, "/"];
                let is_entered = places
                    .iter()
                    .any(|place| std::env::set_current_dir(place).is_ok());
                let result = if is_entered {
                    Ok(())
                } else {
                    Err(io::ErrorKind::NotFound.into())
                };
                step("enter any directory", result)
            }
        }
    }
}

impl Streams {
    fn open(spec: &ExecSpec, account: &Account) -> io::Result<Self> {
        match spec.terminal {
            Some(size) => Self::terminal(terminal::open(size, account)?, spec.stdin),
            None => Self::pipes(spec.stdin),
        }
    }

    fn pipes(stdin: StdinMode) -> io::Result<Self> {
        let (their_stdin, stdin) = match stdin {
            StdinMode::Piped => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                (read, Some(write))
            }
            StdinMode::Null => (open_null()?, None),
        };
        let (stdout, their_stdout) = output_pipe()?;
        let (stderr, their_stderr) = output_pipe()?;
        Ok(Self {
            stdin,
            stdout,
            stderr: Some(stderr),
            theirs: [their_stdin, their_stdout, their_stderr],
        })
    }

    fn terminal(terminal: Terminal, stdin: StdinMode) -> io::Result<Self> {
        let Terminal { ours, theirs } = terminal;
        // Two descriptors on our side, because each of the two ends has its own.
        let (their_stdin, stdin) = match stdin {
            StdinMode::Piped => (theirs.try_clone()?, Some(ours.try_clone()?)),
            StdinMode::Null => (open_null()?, None),
        };
        Ok(Self {
            stdin,
            stdout: ours,
            stderr: None,
            theirs: [their_stdin, theirs.try_clone()?, theirs],
        })
    }
}

fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // A smaller one works, too.
    let _ = fcntl_setpipe_size(&read, PIPE_BYTES);
    Ok((read, write))
}

fn open_null() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/null", flags, Mode::empty())?)
}

fn base_environment(account: &Account) -> [(&'static str, String); 6] {
    // Where pip and npm put the programs of a user who is not root.
    let path = format!("{}/.local/bin:{PATH}", account.home);
    [
        ("PATH", path),
        ("HOME", account.home.clone()),
        ("USER", account.name.clone()),
        ("LOGNAME", account.name.clone()),
        ("SHELL", account.shell.clone()),
        ("LANG", "C.UTF-8".to_owned()),
    ]
}

fn shell() -> String {
    // Without following a link at the end: that could lead to a file system that hangs.
    let has_bash = fs::symlink_metadata("/bin/bash").is_ok();
    if has_bash {
        "/bin/bash".to_owned()
    } else {
        "/bin/sh".to_owned()
    }
}

/// Writes a script that only its user may read.
fn write_script(path: &Path, line: &str, account: &Account) -> io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o500)
        .open(path)?;
    file.write_all(line.as_bytes())?;
    if rustix::process::geteuid().is_root() {
        fchown(
            &file,
            Some(account.uid.as_raw()),
            Some(account.gid.as_raw()),
        )?;
    }
    Ok(())
}

/// Writes a line to the child's stderr, as a shell would.
fn complain(line: &str) {
    let _ = rustix::io::write(rustix::stdio::stderr(), format!("{line}\n").as_bytes());
}

/// The error in words, without the number that the standard library adds.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}
