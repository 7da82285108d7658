//! From the kernel's first process to an agent in a whole system.
//!
//! One line to the console for each stage, and none after it: the console belongs to the kernel.

mod console;
mod defaults;
mod idle;
mod inside;
mod modules;
mod mounts;
mod network;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use dayfly_guest_proto::{BULK_PORT_NAME, CONTROL_PORT_NAME};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::system::{RebootCommand, reboot};

use crate::cgroup::UserGroup;
use crate::identity;
use crate::machine::Machine;
use crate::port;
use crate::{account, activity};

const OPEN_FILES: u64 = 65_536;
const OPEN_FILES_MAX: u64 = 1 << 20;

/// Why the guest did not come up.
#[derive(Debug, thiserror::Error)]
#[error("cannot {stage}")]
pub(crate) struct BootError {
    stage: String,
    source: io::Error,
}

impl BootError {
    fn at(stage: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let stage = stage.into();
        move |source| Self { stage, source }
    }
}

/// Gives the kernel one of its settings.
fn write_setting((path, value): (&str, &str)) -> Result<(), BootError> {
    let written = fs::write(path, value);
    written.map_err(BootError::at(format!("write {value} to {path}")))
}

/// What a booted guest gives to its agent.
#[derive(Debug)]
pub(crate) struct Booted {
    pub(crate) control: OwnedFd,
    pub(crate) bulk: OwnedFd,
    pub(crate) machine: Machine,
}

/// Brings the system up. Runs once, as the first process.
pub(crate) fn boot() -> Result<Booted, BootError> {
    mounts::mount_kernel_filesystems()?;
    console::say("kernel file systems mounted");
    let loaded = modules::load_all()?;
    console::say(&format!("{loaded} modules loaded"));
    let defaults = defaults::read()?;
    let (layers, stores) = mounts::switch_to_overlay()?;
    console::say("root switched");
    mounts::mount_runtime_filesystems()?;
    let user_group =
        UserGroup::create().map_err(BootError::at("make the group of user processes"))?;
    mounts::mount_groups_of_users()?;
    for error in inside::prepare(stores).into_iter().chain(idle::quieten()) {
        console::say(&text_of(&error));
    }
    let machine = Machine::guest(user_group, layers, defaults);
    activity::prepare(&machine.busy_file()).map_err(BootError::at("make the busy file"))?;
    identity::prepare(&machine).map_err(BootError::at("write a first identity"))?;
    prepare_process();
    bring_network_up();
    let open =
        |name: &str| port::open_named(name).map_err(BootError::at(format!("open port {name}")));
    let (control, bulk) = (open(CONTROL_PORT_NAME)?, open(BULK_PORT_NAME)?);
    console::say("ready");
    leave_console();
    Ok(Booted {
        control,
        bulk,
        machine,
    })
}

/// A guest without a network still works for most, so nothing here is a reason to stop.
fn bring_network_up() {
    if let Err(error) = network::bring_loopback_up() {
        console::say(&text_of(&error));
    }
    for error in network::bring_up() {
        console::say(&text_of(&error));
    }
}

/// Says why, then turns the machine off, so that whoever started it learns at once.
pub(crate) fn give_up(error: &dyn std::error::Error) -> ! {
    console::say(&text_of(error));
    let _ = reboot(RebootCommand::PowerOff);
    // The first process must never end: the kernel would panic.
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// An error with all of its causes.
fn text_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn prepare_process() {
    // Nothing here is worth a failed boot.
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
    let open_files = Rlimit {
        current: Some(OPEN_FILES),
        maximum: Some(OPEN_FILES_MAX),
    };
    let _ = setrlimit(Resource::Nofile, open_files);
    let _ = setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: None,
        },
    );
    let _ = reboot(RebootCommand::CadOff);
    if let Ok(name) = account::read_small_file("/etc/hostname") {
        let _ = rustix::system::sethostname(name.trim().as_bytes());
    }
}

/// Puts nothing in the place of the console, which a user process could otherwise inherit.
fn leave_console() {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    if let Ok(null) = rustix::fs::open("/dev/null", flags, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
