//! The file system of a jail.
//!
//! Every mount is cloned from a descriptor, restricted while it is still detached, and attached
//! to a descriptor. No path is looked up twice, so nothing can change between check and use, and
//! nothing is reachable for a moment with more rights than it ends up with.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use dayfly_host::files::open_without_links;
use dayfly_host::jail::{BindMount, JailSpec, JailStep, MountAccess, NULL_DEVICE};
use dayfly_host::sys::{MountAttributes, set_mount_attributes};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Uid, chownat, fstat, mkdirat,
    mknodat, openat2,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    mount_change, move_mount, open_tree, unmount,
};
use rustix::process::{chdir, fchdir, pivot_root};

use crate::failure::{Failure, Step};

/// Room for the names of a few devices.
const DEVICES_SIZE: &str = "64k";
const DEVICES_INODES: &str = "64";

pub(crate) fn build_and_enter(spec: &JailSpec) -> Result<(), Failure> {
    let everything = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", everything).step(JailStep::MountRoot, "make mounts private")?;
    let root = mount_root(&spec.root)?;
    mount_devices(spec, &root)?;
    for mount in &spec.mounts {
        bind(mount, &root)?;
    }
    pivot_into(&root)
}

/// The root is mounted over its own source, so that no other directory is needed for it.
fn mount_root(source: &Path) -> Result<OwnedFd, Failure> {
    let step = JailStep::MountRoot;
    let place = open_without_links(source).step(step, source.display())?;
    let attributes = MountAttributes {
        read_only: true,
        no_set_user_id: true,
        no_devices: true,
        no_execution: false,
    };
    let root = clone_mount(&place).step(step, source.display())?;
    set_mount_attributes(&root, attributes).step(step, source.display())?;
    attach(&root, &place).step(step, source.display())?;
    Ok(root)
}

fn bind(mount: &BindMount, root: &OwnedFd) -> Result<(), Failure> {
    let step = JailStep::Bind;
    let source = open_without_links(&mount.source).step(step, mount.source.display())?;
    let status = fstat(&source).step(step, mount.source.display())?;
    check_source(&status, mount)?;
    let attributes = MountAttributes {
        read_only: mount.access == MountAccess::ReadOnly,
        no_set_user_id: true,
        no_devices: true,
        no_execution: true,
    };
    let tree = clone_mount(&source).step(step, mount.source.display())?;
    set_mount_attributes(&tree, attributes).step(step, mount.source.display())?;
    let place = open_target(root, &mount.target).step(step, mount.target.display())?;
    attach(&tree, &place).step(step, mount.target.display())
}

fn check_source(status: &Stat, mount: &BindMount) -> Result<(), Failure> {
    let refuse = |why: &str| {
        let detail = format!("{} {why}", mount.source.display());
        Err(Failure::new(JailStep::Bind, detail))
    };
    let kind = FileType::from_raw_mode(status.st_mode);
    match kind {
        FileType::Directory => Ok(()),
        // A second name may have been planted here to get at a file of somebody else.
        FileType::RegularFile if mount.access == MountAccess::ReadWrite && status.st_nlink != 1 => {
            refuse("has another name")
        }
        FileType::RegularFile => Ok(()),
        FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => refuse("is neither a file nor a directory"),
    }
}

fn mount_devices(spec: &JailSpec, root: &OwnedFd) -> Result<(), Failure> {
    let step = JailStep::MountDevices;
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).step(step, "tmpfs")?;
    for (key, value) in [
        ("size", DEVICES_SIZE),
        ("nr_inodes", DEVICES_INODES),
        ("mode", "0755"),
    ] {
        fsconfig_set_string(&context, key, value).step(step, key)?;
    }
    fsconfig_create(&context).step(step, "tmpfs")?;
    let restricted = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let devices =
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, restricted).step(step, "tmpfs")?;
    make_device(
        &devices,
        Path::new(NULL_DEVICE),
        Mode::from_raw_mode(0o666),
        0,
    )?;
    for path in spec
        .devices
        .iter()
        .filter(|path| *path != Path::new(NULL_DEVICE))
    {
        make_device(&devices, path, Mode::from_raw_mode(0o660), spec.gid)?;
    }
    let read_only = MountAttributes {
        read_only: true,
        no_set_user_id: true,
        no_devices: false,
        no_execution: true,
    };
    set_mount_attributes(&devices, read_only).step(step, "read-only")?;
    let place = open_target(root, Path::new("/dev")).step(step, "/dev")?;
    attach(&devices, &place).step(step, "/dev")
}

/// A node of its own, and not a mount of the host's, so that the engine's group can be given
/// access to this device without being given the host's group for it.
fn make_device(devices: &OwnedFd, path: &Path, mode: Mode, group: u32) -> Result<(), Failure> {
    let step = JailStep::MountDevices;
    let node = open_without_links(path).step(step, path.display())?;
    let status = fstat(&node).step(step, path.display())?;
    let kind = FileType::from_raw_mode(status.st_mode);
    if kind != FileType::CharacterDevice {
        let detail = format!("{} is not a character device", path.display());
        return Err(Failure::new(step, detail));
    }
    let name = path.strip_prefix("/dev").unwrap_or(path);
    for directory in parents(name) {
        match mkdirat(devices, &directory, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error).step(step, directory.display()),
        }
    }
    mknodat(devices, name, kind, mode, status.st_rdev).step(step, path.display())?;
    let owner = (Some(Uid::ROOT), Some(Gid::from_raw(group)));
    chownat(devices, name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW).step(step, path.display())
}

/// The directories above a relative path, outermost first.
fn parents(name: &Path) -> Vec<PathBuf> {
    let mut parents: Vec<_> = name
        .ancestors()
        .skip(1)
        .filter(|directory| !directory.as_os_str().is_empty())
        .map(Path::to_owned)
        .collect();
    parents.reverse();
    parents
}

/// A detached copy of the one mount under `place`, without the mounts below it.
fn clone_mount(place: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(place, "", flags)
}

fn attach(tree: &OwnedFd, place: &OwnedFd) -> rustix::io::Result<()> {
    let by_descriptor =
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", place, "", by_descriptor)
}

/// Opens a mount point inside the new root, refusing links.
fn open_target(root: &OwnedFd, target: &Path) -> rustix::io::Result<OwnedFd> {
    let inside = target.strip_prefix("/").unwrap_or(target);
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(
        root.as_fd(),
        inside,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        resolve,
    )
}

/// With both arguments the same, the old root ends up stacked on the new one and is let go.
fn pivot_into(root: &OwnedFd) -> Result<(), Failure> {
    let step = JailStep::Pivot;
    fchdir(root).step(step, "enter the new root")?;
    pivot_root(".", ".").step(step, "pivot")?;
    unmount(".", UnmountFlags::DETACH).step(step, "let the old root go")?;
    chdir("/").step(step, "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_above_a_device_are_listed_outermost_first() {
        assert_eq!(parents(Path::new("kvm")), Vec::<PathBuf>::new());
        assert_eq!(
            parents(Path::new("a/b/c")),
            [PathBuf::from("a"), PathBuf::from("a/b")]
        );
    }
}
