//! The first process of a guest and its agent.
//!
//! It boots the guest (modules, disks, root), then serves a host over two virtio ports: execs,
//! files, sockets, identity, quiesce. It links only the words and the wire protocol, because its pages and
//! its first instructions are part of every restore. It must not know what a sandbox is for, what
//! its network allows or how a capture is taken.
//!
//! Start reading at [`boot`], then [`agent`], then [`conversation`] and [`calls`].
#![deny(unsafe_code)]

mod account;
mod activity;
mod agent;
mod background;
mod boot;
mod calls;
mod cgroup;
mod clock;
mod conversation;
mod devices;
mod disks;
mod exec;
mod file_calls;
mod files;
mod free_memory;
mod hooks;
mod identity;
mod life;
mod machine;
mod pause;
mod poller;
mod port;
mod port_waits;
mod ports;
mod postponed;
mod refusal;
mod socket;
mod socket_calls;
mod sys;
mod volumes;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;

use rustix::fs::{Mode, OFlags};
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};

use agent::{Agent, OnHangUp};
use boot::Booted;
use machine::Machine;

/// Serves standard input as the control port and standard output as the bulk port, without being
/// anybody's first process. For tests, which may give a directory for hooks, logs and the busy file.
const SERVE_STDIO: &str = "--serve-stdio";

fn main() -> ExitCode {
    if rustix::process::getpid().is_init() {
        serve_guest();
    }
    if std::env::args().nth(1).as_deref() == Some(SERVE_STDIO) {
        return if serve_stdio().is_ok() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    complain("dayfly-guest is the first process of a guest and does nothing else\n");
    ExitCode::FAILURE
}

fn serve_guest() -> ! {
    let Booted {
        control,
        bulk,
        machine,
    } = match boot::boot() {
        Ok(booted) => booted,
        Err(error) => boot::give_up(&error),
    };
    let result = Agent::new(control, bulk, machine)
        .and_then(|mut agent| agent.run(OnHangUp::Wait))
        .and(Err(io::ErrorKind::Other.into()));
    match result {
        Ok(never) => never,
        Err(error) => boot::give_up(&error),
    }
}

fn serve_stdio() -> io::Result<()> {
    let (control, bulk) = (take_port(stdin())?, take_port(stdout())?);
    // User processes must not find the ports where they look for their own streams.
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    let machine = Machine::borrowed(std::env::args_os().nth(2).map(PathBuf::from));
    Agent::new(control, bulk, machine)?.run(OnHangUp::Return)
}

fn take_port(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let port = rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?;
    rustix::io::ioctl_fionbio(&port, true)?;
    Ok(port)
}

fn complain(text: &str) {
    let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
}
