//! The two processes of a launch: the parent that enters the slot, and the child that becomes the
//! engine.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use dayfly_host::jail::{JailReport, JailSpec, JailStep, REPORT_BYTES_MAX, SPEC_BYTES_MAX};
use dayfly_host::process::ProcessIdentity;
use dayfly_host::sys::{ForkSide, SingleThread, close_on_exec_from, fork};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::failure::{Failure, Step};
use crate::{enter, filter, privileges};

/// Descriptors below this one are the standard ones.
const FIRST_OTHER_DESCRIPTOR: u32 = 3;

pub(crate) fn run() -> ExitCode {
    let Ok(mut status) = take_status() else {
        return ExitCode::FAILURE;
    };
    let report = match launch() {
        Ok(Role::Parent(report)) => report,
        // The child has told the parent, which reports for both.
        Ok(Role::FailedChild) => return ExitCode::FAILURE,
        Err(failure) => failure.into_report(),
    };
    let told = serde_json::to_vec(&report)
        .map_err(io::Error::from)
        .and_then(|bytes| status.write_all(&bytes));
    match (told, report) {
        (Ok(()), JailReport::Started { .. }) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

enum Role {
    Parent(JailReport),
    FailedChild,
}

fn launch() -> Result<Role, Failure> {
    let single = SingleThread::prove().step(JailStep::Prepare, "count threads")?;
    close_on_exec_from(FIRST_OTHER_DESCRIPTOR).step(JailStep::Prepare, "inherited descriptors")?;
    let spec = read_spec()?;
    // The root is about to change and the jail has no /proc; the child's start time is read here.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = openat(CWD, "/proc", flags, Mode::empty()).step(JailStep::Prepare, "/proc")?;
    let filters = filter::compile(spec.calls)?;
    enter::enter_slot(&spec)?;
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).step(JailStep::Fork, "pipe")?;
    match fork(&single).step(JailStep::Fork, "engine process")? {
        ForkSide::Parent { child } => {
            drop(writer);
            follow(child, reader, &proc).map(Role::Parent)
        }
        ForkSide::Child => {
            drop(reader);
            let failure = become_engine(&spec, &filters);
            let bytes = serde_json::to_vec(&failure.into_report()).unwrap_or_default();
            // When even this fails, the parent sees a child that ended without a word.
            let _ = File::from(writer).write_all(&bytes);
            Ok(Role::FailedChild)
        }
    }
}

/// Moves the report's pipe out of the way: descriptor 1 becomes the engine's output, and the pipe
/// closes by itself when the engine is executed.
fn take_status() -> io::Result<File> {
    let status = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(status))
}

fn read_spec() -> Result<JailSpec, Failure> {
    let mut bytes = Vec::new();
    io::stdin()
        .take(SPEC_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .step(JailStep::ReadSpec, "standard input")?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > SPEC_BYTES_MAX {
        return Err(Failure::new(JailStep::ReadSpec, "too large"));
    }
    let spec: JailSpec =
        serde_json::from_slice(&bytes).map_err(|error| Failure::new(JailStep::ReadSpec, error))?;
    spec.validate()
        .map_err(|error| Failure::new(JailStep::ReadSpec, error))?;
    Ok(spec)
}

/// Waits until the child has executed or said why not.
fn follow(child: Pid, reader: OwnedFd, proc: &OwnedFd) -> Result<JailReport, Failure> {
    let mut bytes = Vec::new();
    File::from(reader)
        .take(REPORT_BYTES_MAX)
        .read_to_end(&mut bytes)
        .step(JailStep::Execute, "word from the child")?;
    let pid = child.as_raw_nonzero().get();
    if bytes.is_empty() {
        let identity = read_identity(pid, proc)?;
        return Ok(JailReport::Started { identity });
    }
    // Nobody else will: its parent after us may not know of it.
    let _ = waitpid(Some(child), WaitOptions::empty());
    serde_json::from_slice(&bytes).map_err(|error| Failure::new(JailStep::Execute, error))
}

/// The pid cannot be recycled before this process, its parent, has ended.
fn read_identity(pid: i32, proc: &OwnedFd) -> Result<ProcessIdentity, Failure> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let stat = openat(proc, format!("{pid}/stat"), flags, Mode::empty())
        .step(JailStep::Execute, "start time of the child")?;
    let mut bytes = Vec::new();
    File::from(stat)
        .read_to_end(&mut bytes)
        .step(JailStep::Execute, "start time of the child")?;
    ProcessIdentity::from_stat(pid, &String::from_utf8_lossy(&bytes))
        .map_err(|error| Failure::new(JailStep::Execute, error))
}

/// Does not return unless something failed.
fn become_engine(spec: &JailSpec, filters: &filter::Filters) -> Failure {
    let prepared = privileges::prepare_process(spec)
        .and_then(|()| privileges::drop_all(spec))
        .and_then(|()| filters.install());
    if let Err(failure) = prepared {
        return failure;
    }
    let error = Command::new(&spec.program)
        .args(&spec.arguments)
        .env_clear()
        .envs(&spec.environment)
        .exec();
    match Err::<(), _>(error).step(JailStep::Execute, spec.program.display()) {
        Err(failure) => failure,
        Ok(()) => Failure::new(JailStep::Execute, "no error"),
    }
}
