//! What programs expect that bring computers of their own: engines of containers, file systems in
//! processes, tunnels.
//!
//! A guest without it still works for most, so nothing of it is a reason to stop.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount, move_mount, open_tree};

use super::{BootError, write_setting};

/// Where engines of containers keep images: they lay overlays of their own there, and the kernel
/// refuses one whose upper directory is on an overlay, as the root is. So these are directories of
/// the writable disk itself. The names on the disk are never changed: snapshots have them.
const STORES: [(&str, &str, u32); 3] = [
    ("docker", "/var/lib/docker", 0o710),
    ("containerd", "/var/lib/containerd", 0o711),
    ("containers", "/var/lib/containers", 0o755),
];
/// On the writable disk, beside the directories of the root's overlay.
const STORES_DIRECTORY: &str = "plain";
/// The kernel makes them for root alone, and leaves it to a guest to say that everybody may use
/// them; both ask for privileges themselves where it matters.
const FOR_EVERYBODY: [&str; 2] = ["/dev/fuse", "/dev/net/tun"];
const DEVICE_MODE: u32 = 0o666;
/// Whose processes a user may measure: all of its own, and the kernel in them.
const SETTINGS: [(&str, &str); 1] = [("/proc/sys/kernel/perf_event_paranoid", "1")];

/// For root alone: a view of processes over which nothing is ever mounted. Over `/proc` the agent
/// mounts the id of the boot, and the kernel lets a user who is not root mount a `/proc` of a
/// container only where somebody sees all of one already.
const WHOLE_VIEW: &str = "/run/dayfly/kernel";

/// A directory of the writable disk on its way to a path of the guest's.
#[derive(Debug)]
pub(super) struct Store {
    path: &'static str,
    mode: u32,
    tree: OwnedFd,
}

/// Makes the directories on the writable disk, which still has a path.
pub(super) fn open_stores(writable: &Path) -> Result<Vec<Store>, BootError> {
    let open = |&(name, path, mode): &(&str, &'static str, u32)| {
        let place = writable.join(STORES_DIRECTORY).join(name);
        let opened = make(&place, mode).and_then(|()| {
            let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
            Ok(open_tree(CWD, &place, flags)?)
        });
        let tree = opened.map_err(BootError::at(format!("open the disk's part for {path}")))?;
        Ok(Store { path, mode, tree })
    };
    STORES.iter().map(open).collect()
}

/// Sets everything up as far as it goes: each part is tried, whatever became of those before.
pub(super) fn prepare(stores: Vec<Store>) -> Vec<BootError> {
    let stores = stores.into_iter().map(|store| {
        let stage = format!("mount the disk on {}", store.path);
        attach(&store).map_err(BootError::at(stage))
    });
    let devices = FOR_EVERYBODY.iter().map(|path| {
        let mode = fs::Permissions::from_mode(DEVICE_MODE);
        let opened = fs::set_permissions(path, mode);
        opened.map_err(BootError::at(format!("open {path} to everybody")))
    });
    let settings = SETTINGS.into_iter().map(write_setting);
    let view = show_whole_view().map_err(BootError::at("mount a second view of processes"));
    stores
        .chain(devices)
        .chain(settings)
        .chain([view])
        .filter_map(Result::err)
        .collect()
}

fn show_whole_view() -> io::Result<()> {
    let place = Path::new(WHOLE_VIEW).join("proc");
    fs::create_dir_all(&place)?;
    fs::set_permissions(WHOLE_VIEW, fs::Permissions::from_mode(0o700))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", &place, "proc", flags, c"")?)
}

fn attach(store: &Store) -> io::Result<()> {
    match fs::symlink_metadata(store.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(store.path.as_ref(), store.mode)?
        }
        Err(error) => return Err(error),
        // What an image has there must be seen, and a link may lead anywhere.
        Ok(metadata) if !metadata.is_dir() => return Ok(()),
        Ok(_) if fs::read_dir(store.path)?.next().is_some() => return Ok(()),
        Ok(_) => {}
    }
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(&store.tree, "", CWD, store.path, flags)?)
}

/// Makes a directory with this mode. One that is there keeps its own.
fn make(path: &Path, mode: u32) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
