//! Programs of e2fsprogs, and the little that is known of a file system without them.
//!
//! A guest has written what these read. They run without privileges, for a limited time, and are
//! handed the one file.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::volumes::{VolumeError, file};

/// Who has no rights to anything on any Linux system.
const NOBODY: u32 = 65_534;
/// How long a program may work on one volume.
const TOOL_SECONDS_MAX: &str = "300";

/// Makes a file one user's, with this mode.
pub(crate) fn set_owner(path: &Path, user: u32, mode: u32) -> io::Result<()> {
    if fs::metadata(path)?.uid() != user && dayfly_host::privileges::is_root() {
        std::os::unix::fs::lchown(path, Some(user), Some(user))?;
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Runs a program of e2fsprogs on a file system that nothing has mounted. A guest has written what
/// it reads, so it runs without privileges and is handed the one file.
pub(crate) fn run(
    program: &'static str,
    arguments: &[&str],
    disk: &Path,
) -> Result<(), VolumeError> {
    let failed = |message: String| VolumeError::Program { program, message };
    let image = fs::File::options()
        .read(true)
        .write(true)
        .open(disk)
        .map_err(|source| file(disk, source))?;
    // What a guest has written may keep a checker busy for ever.
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", TOOL_SECONDS_MAX, program]);
    if dayfly_host::privileges::is_root() {
        set_owner(disk, NOBODY, 0o600).map_err(|source| file(disk, source))?;
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command
        .args(arguments)
        .arg("/proc/self/fd/0")
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::from(image))
        .output();
    if dayfly_host::privileges::is_root() {
        set_owner(disk, 0, 0o600).map_err(|source| file(disk, source))?;
    }
    let output = output.map_err(|error| failed(format!("{error}; install e2fsprogs")))?;
    let is_checker = program == "e2fsck";
    // A checker that says 1 has corrected everything.
    if output.status.success() || (is_checker && output.status.code() == Some(1)) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(failed(text.trim().chars().take(400).collect()))
}

/// Whether a file system was not unmounted: its journal holds what its blocks do not yet.
pub(crate) fn needs_recovery(disk: &Path) -> io::Result<bool> {
    const MAGIC: [u8; 2] = [0x53, 0xef];
    const RECOVER: u8 = 0x04;
    let mut superblock = [0; 1024];
    fs::File::open(disk)?.read_exact_at(&mut superblock, 1024)?;
    Ok(superblock[0x38..0x3a] != MAGIC || superblock[0x60] & RECOVER != 0)
}
