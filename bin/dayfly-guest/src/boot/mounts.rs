//! What is mounted where: first what the kernel offers, then the sandbox's own root.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_move, unmount};

use super::BootError;
use super::inside::{self, Store};
use crate::machine::Layers;
use crate::{cgroup, devices, disks};

const BASE: &str = "/dayfly/base";
const WRITABLE: &str = "/dayfly/rw";
const NEW_ROOT: &str = "/dayfly/root";
const UPPER: &str = "/dayfly/rw/upper";
const WORK: &str = "/dayfly/rw/work";
/// Where the agent and programs write, whatever the image is.
const NEEDED: [(&str, u32); 4] = [
    ("/tmp", 0o1777),
    ("/etc", 0o755),
    ("/var", 0o755),
    ("/var/lib", 0o755),
];
const PLAIN: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC);

/// The views of the kernel that everything else needs.
pub(super) fn mount_kernel_filesystems() -> Result<(), BootError> {
    attach(
        "devtmpfs",
        "devtmpfs",
        "/dev",
        MountFlags::NOSUID,
        "mode=0755",
    )?;
    attach("proc", "proc", "/proc", PLAIN, "")?;
    attach("sysfs", "sysfs", "/sys", PLAIN, "")
}

/// Lays the writable disk over the read-only one and makes the result the root. Gives descriptors
/// on the two file systems, which nobody can reach by a path afterwards, and the directories of the
/// writable disk that are to be seen without the overlay.
pub(super) fn switch_to_overlay() -> Result<(Layers, Vec<Store>), BootError> {
    let find = |serial: &str| {
        let disk = devices::wait_for(|| disks::look(serial));
        disk.map(|disk| disk.device)
            .map_err(BootError::at(format!("find the disk with serial {serial}")))
    };
    attach(find("base")?, "erofs", BASE, MountFlags::RDONLY, "")?;
    // Zeroing inode tables in the background would dirty a disk that most sandboxes never fill.
    attach(
        find("rw")?,
        "ext4",
        WRITABLE,
        MountFlags::NOATIME,
        "noinit_itable",
    )?;
    for directory in [UPPER, WORK] {
        make_directory(directory, 0o755)?;
    }
    let layers = format!("lowerdir={BASE},upperdir={UPPER},workdir={WORK}");
    attach("overlay", "overlay", NEW_ROOT, MountFlags::empty(), &layers)?;
    let layers = Layers {
        base: open_directory(BASE)?,
        writable: open_directory(WRITABLE)?,
    };
    let stores = inside::open_stores(Path::new(WRITABLE))?;
    // The overlay keeps both disks; nobody else needs a way to its parts.
    for part in [BASE, WRITABLE] {
        unmount(part, UnmountFlags::DETACH).map_err(io_error(format!("detach {part}")))?;
    }
    for view in ["/dev", "/proc", "/sys"] {
        let target = format!("{NEW_ROOT}{view}");
        make_directory(&target, 0o755)?;
        mount_move(view, target.as_str()).map_err(io_error(format!("move {view}")))?;
    }
    enter(NEW_ROOT)?;
    Ok((layers, stores))
}

fn open_directory(path: &str) -> Result<OwnedFd, BootError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(io_error(format!("open {path}")))
}

/// What a Linux system expects to find and no snapshot of the disk keeps.
pub(super) fn mount_runtime_filesystems() -> Result<(), BootError> {
    attach("cgroup2", "cgroup2", cgroup::ROOT, PLAIN, "")?;
    attach(
        "devpts",
        "devpts",
        "/dev/pts",
        MountFlags::NOSUID,
        "mode=0620,ptmxmode=0666,gid=5",
    )?;
    attach(
        "tmpfs",
        "tmpfs",
        "/dev/shm",
        MountFlags::NOSUID,
        "mode=1777",
    )?;
    attach("mqueue", "mqueue", "/dev/mqueue", PLAIN, "")?;
    let run = MountFlags::NOSUID | MountFlags::NODEV;
    attach("tmpfs", "tmpfs", "/run", run, "mode=0755")?;
    make_directory("/run/dayfly", 0o755)?;
    make_directory("/run/lock", 0o1777)?;
    // An image need not have them; what it has stays as it is.
    for (directory, mode) in NEEDED {
        if fs::symlink_metadata(directory).is_err() {
            make_directory(directory, mode)?;
        }
    }
    for (link, target) in [
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
    ] {
        let _ = std::os::unix::fs::symlink(target, link);
    }
    Ok(())
}

/// Shows the groups as users see them, in the place of all groups.
pub(super) fn mount_groups_of_users() -> Result<(), BootError> {
    unmount(cgroup::ROOT, UnmountFlags::DETACH)
        .map_err(io_error("detach all groups".to_owned()))?;
    attach("cgroup2", "cgroup2", cgroup::ROOT, PLAIN, "")
}

fn enter(root: &str) -> Result<(), BootError> {
    let enter = || {
        std::env::set_current_dir(root)?;
        mount_move(".", "/")?;
        rustix::process::chroot(".")?;
        std::env::set_current_dir("/")
    };
    enter().map_err(BootError::at("enter the new root"))
}

fn attach(
    source: impl AsRef<Path>,
    kind: &str,
    target: &str,
    flags: MountFlags,
    options: &str,
) -> Result<(), BootError> {
    let stage = || format!("mount {kind} on {target}");
    fs::create_dir_all(target).map_err(BootError::at(stage()))?;
    let options = CString::new(options)
        .map_err(|_| BootError::at(stage())(io::ErrorKind::InvalidInput.into()))?;
    mount(source.as_ref(), target, kind, flags, options.as_c_str()).map_err(io_error(stage()))
}

fn make_directory(path: &str, mode: u32) -> Result<(), BootError> {
    let make = || {
        fs::create_dir_all(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    };
    make().map_err(BootError::at(format!("make {path}")))
}

fn io_error(stage: String) -> impl FnOnce(rustix::io::Errno) -> BootError {
    move |error| BootError::at(stage)(error.into())
}
