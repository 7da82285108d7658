//! Becoming a sandbox of its own: name, ids, clock, randomness.
//!
//! Everything that two restores of one snapshot would otherwise share is renewed here, before the
//! first instruction of user code.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use dayfly_guest_proto::{Identified, Identity};
use libc::{ELOOP, O_NOFOLLOW};
use rustix::mount::mount_bind;
use rustix::time::{ClockId, Timespec, clock_settime};

use crate::account;
use crate::hooks;
use crate::machine::Machine;
use crate::sys;

const KERNEL_BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The kernel's limit of a host name.
const HOSTNAME_BYTES_MAX: usize = 64;

/// Why the guest could not become this sandbox. It stays in quarantine.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentifyError {
    #[error("host name is empty, too long or has characters that no host name has")]
    BadHostname,
    #[error("cannot {what}")]
    Step {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

/// What an identity renews in the kernel and in files, in the words of the answer.
const RENEWED: [&str; 5] = [
    "kernel_randomness",
    "wall_clock",
    "hostname",
    "machine_id",
    "boot_id",
];
/// What nobody renews: programs go on as they were.
const NEVER_RENEWED: [&str; 3] = ["open_connections", "process_ids", "file_system_ids"];
const USER_SPACE_RANDOMNESS: &str = "user_space_randomness";

/// Applies an identity, lets hooks do their part, and tells what is new and what is not.
pub(crate) fn become_sandbox(
    identity: &Identity,
    machine: &Machine,
) -> Result<Identified, IdentifyError> {
    apply(identity, machine)?;
    let hooks = machine.hooks_directory.as_deref();
    let hooks = hooks.map_or_else(Vec::new, |directory| {
        hooks::run(directory, identity, machine.user_group.as_ref())
    });
    let mut renewed = vec!["agent_token"];
    let mut not_renewed = NEVER_RENEWED.to_vec();
    if machine.is_guest() {
        renewed.extend(RENEWED);
    } else {
        not_renewed.extend(RENEWED);
    }
    // Only hooks know the programs; one that failed did not do what it was asked.
    let is_reseeded = identity.reseed_user_space
        && !hooks.is_empty()
        && hooks.iter().all(|hook| hook.exit_code == Some(0));
    if is_reseeded {
        renewed.push(USER_SPACE_RANDOMNESS);
    } else {
        not_renewed.push(USER_SPACE_RANDOMNESS);
    }
    let words = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
    Ok(Identified {
        sandbox_id: identity.sandbox_id.clone(),
        hooks,
        renewed: words(renewed),
        not_renewed: words(not_renewed),
    })
}

/// Checks and applies an identity. May be repeated with the same or another one.
fn apply(identity: &Identity, machine: &Machine) -> Result<(), IdentifyError> {
    let hostname = identity.hostname.as_str();
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    if hostname.is_empty() || hostname.len() > HOSTNAME_BYTES_MAX || !hostname.bytes().all(is_fine)
    {
        return Err(IdentifyError::BadHostname);
    }
    if !machine.is_guest() {
        return Ok(());
    }
    let step = |what, result: io::Result<()>| {
        result.map_err(|source| IdentifyError::Step { what, source })
    };
    // Randomness first: what follows draws from it.
    step(
        "renew the kernel's randomness",
        sys::reseed(&identity.entropy.0),
    )?;
    step("set the clock", set_clock(identity.wall_clock_unix_nanos))?;
    let set_name = rustix::system::sethostname(hostname.as_bytes()).map_err(io::Error::from);
    step("set the host name", set_name)?;
    step(
        "write the host name",
        overwrite("/etc/hostname", &format!("{hostname}\n")),
    )?;
    step("write the hosts file", write_hosts(hostname))?;
    let machine_id = format!("{}\n", identity.machine_id.as_str());
    step(
        "write the machine id",
        overwrite("/etc/machine-id", &machine_id),
    )?;
    step("renew the boot id", renew_boot_id(machine))
}

/// Puts placeholders where identities go, at boot. A restore then overwrites files that are in the
/// writable layer already, instead of copying them up from the base.
pub(crate) fn prepare(machine: &Machine) -> io::Result<()> {
    overwrite("/etc/hostname", "dayfly\n")?;
    write_hosts("dayfly")?;
    overwrite("/etc/machine-id", &format!("{:032}\n", 0))?;
    renew_boot_id(machine)
}

pub(crate) fn set_clock(unix_nanos: u64) -> io::Result<()> {
    let seconds = i64::try_from(unix_nanos / 1_000_000_000).unwrap_or(i64::MAX);
    let nanos = i64::try_from(unix_nanos % 1_000_000_000).unwrap_or(0);
    clock_settime(
        ClockId::Realtime,
        Timespec {
            tv_sec: seconds,
            tv_nsec: nanos,
        },
    )?;
    Ok(())
}

/// Overwrites a file in place. User code is frozen, so nobody can see half of it, and a new file
/// with a rename would cost every restore the cold paths of the file system for nothing. Without a
/// sync: after a crash the sandbox is identified anew.
pub(crate) fn overwrite(path: &str, content: &str) -> io::Result<()> {
    let opened = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(O_NOFOLLOW)
        .open(path);
    let mut file = match opened {
        Ok(file) => file,
        // A link that user code left there is not followed; it is replaced.
        Err(error) if error.raw_os_error() == Some(ELOOP) => {
            fs::remove_file(path)?;
            return fs::write(path, content);
        }
        Err(error) => return Err(error),
    };
    file.write_all(content.as_bytes())?;
    file.set_len(u64::try_from(content.len()).unwrap_or(u64::MAX))
}

/// Keeps the user's lines and gives the host's own name one of its own.
fn write_hosts(hostname: &str) -> io::Result<()> {
    const MARK: &str = "# dayfly";
    let old = account::read_small_file("/etc/hosts").unwrap_or_default();
    let mut text: String = old
        .lines()
        .filter(|line| !line.ends_with(MARK))
        .map(|line| format!("{line}\n"))
        .collect();
    if !old.contains("127.0.0.1") {
        text.push_str("127.0.0.1 localhost\n");
    }
    text.push_str(&format!("127.0.1.1 {hostname} {MARK}\n"));
    overwrite("/etc/hosts", &text)
}

/// Gives the boot an id of its own, so that programs which compare boot ids see a new machine.
fn renew_boot_id(machine: &Machine) -> io::Result<()> {
    let path = machine.runtime_directory.join("boot_id");
    let id = format_uuid(sys::random_bytes()?);
    let is_bound = path.exists();
    // Written in place: the mount shows this very file.
    fs::write(&path, format!("{id}\n"))?;
    if !is_bound {
        mount_bind(&path, Path::new(KERNEL_BOOT_ID))?;
    }
    Ok(())
}

fn format_uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_id_has_the_shape_of_a_random_uuid() {
        assert_eq!(
            format_uuid([0xFF; 16]),
            "ffffffff-ffff-4fff-bfff-ffffffffffff"
        );
        assert_eq!(format_uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
    }
}
