use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use super::*;

fn volumes() -> Volumes {
    let mut volumes = Volumes::default();
    volumes
        .mount("spare0".to_owned(), "/volumes/a", false, None)
        .unwrap();
    volumes
}

#[test]
fn only_spare_disks_carry_volumes_and_only_so_many() {
    let mut volumes = volumes();
    for serial in ["rw", "base", "", "vda"] {
        let refused = volumes.mount(serial.to_owned(), "/volumes/b", false, None);
        assert_eq!(refused.unwrap_err().code, GuestErrorCode::Invalid);
    }
    for index in 0..SANDBOX_VOLUMES_MAX {
        let serial = format!("spare{index}");
        volumes.mount(serial, "/volumes/b", true, None).unwrap();
    }
    let refused = volumes.mount("spare99".to_owned(), "/volumes/c", false, None);
    assert!(refused.is_err());
}

#[test]
fn volume_is_found_by_its_path_however_it_is_written() {
    let volumes = volumes();
    let found = volumes.unmount("//volumes/a/").unwrap();
    assert!(matches!(found, Some(DiskOperation::Unmount { serial }) if serial == "spare0"));
    assert!(volumes.unmount("/volumes/b").unwrap().is_none());
    assert!(volumes.unmount("volumes/a").is_err());
}

/// A disk of this machine with an empty file system on it.
struct LoopDisk {
    directory: tempfile::TempDir,
    device: PathBuf,
}

impl LoopDisk {
    /// `None` where disks cannot be made; the caller says that it did nothing.
    fn try_make() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        fs::File::create(&image).unwrap().set_len(32 << 20).unwrap();
        let mut format = Command::new("mkfs.ext4");
        let made = format.args(["-q", "-F"]).arg(&image).status();
        let is_made = made.is_ok_and(|status| status.success());
        let mut attach = Command::new("losetup");
        let output = attach
            .args(["--find", "--show"])
            .arg(&image)
            .output()
            .ok()?;
        if !is_made || !output.status.success() {
            println!("skipped: this needs root, mkfs.ext4 and loop devices");
            return None;
        }
        let device = String::from_utf8(output.stdout).unwrap();
        Some(Self {
            directory,
            device: PathBuf::from(device.trim_end()),
        })
    }

    fn disk(&self) -> Disk {
        let name = self.device.file_name().unwrap();
        let about = Path::new("/sys/block").join(name);
        let read = |name: &str| fs::read_to_string(about.join(name)).unwrap();
        Disk {
            device: self.device.clone(),
            number: read("dev").trim_end().to_owned(),
            bytes: read("size").trim_end().parse::<u64>().unwrap() * 512,
        }
    }

    fn place(&self) -> Place {
        let path = self.directory.path().join("volumes/data");
        Place::parse(path.to_str().unwrap()).unwrap()
    }

    fn grow_to(&self, bytes: u64) {
        let image = fs::File::options()
            .write(true)
            .open(self.directory.path().join("image"));
        image.unwrap().set_len(bytes).unwrap();
        let mut grown = Command::new("losetup");
        let grown = grown.arg("--set-capacity").arg(&self.device);
        assert!(grown.status().unwrap().success());
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let _ = unmount(&self.disk());
        let mut detached = Command::new("losetup");
        let _ = detached.arg("--detach").arg(&self.device).status();
    }
}

#[test]
fn volume_is_mounted_given_to_the_user_and_not_unmounted_while_in_use() {
    let Some(disk) = LoopDisk::try_make() else {
        return;
    };
    let place = disk.place();
    mount(&disk.disk(), &place, false).unwrap();
    mount(&disk.disk(), &place, false).unwrap();
    assert_eq!(mounted_paths(&disk.disk().number).unwrap().len(), 1);
    assert_eq!(fs::metadata(place.path()).unwrap().uid(), FIRST_USER);
    let flags = rustix::fs::statvfs(place.path()).unwrap().f_flag;
    let wanted = rustix::fs::StatVfsMountFlags::NOSUID | rustix::fs::StatVfsMountFlags::NODEV;
    assert!(flags.contains(wanted), "{flags:?}");

    let file = fs::File::create(place.path().join("file")).unwrap();
    let refused = unmount(&disk.disk()).unwrap_err();
    assert_eq!(refused.code, GuestErrorCode::Busy);
    assert!(place.path().join("file").exists(), "it is still mounted");
    drop(file);
    unmount(&disk.disk()).unwrap();
    unmount(&disk.disk()).unwrap();
    assert!(!place.path().join("file").exists());
}

#[test]
fn read_only_volume_takes_no_write_and_a_used_one_keeps_its_owner() {
    let Some(disk) = LoopDisk::try_make() else {
        return;
    };
    let place = disk.place();
    mount(&disk.disk(), &place, true).unwrap();
    let written = fs::write(place.path().join("file"), "");
    assert_eq!(
        written.unwrap_err().kind(),
        io::ErrorKind::ReadOnlyFilesystem
    );
    assert_eq!(fs::metadata(place.path()).unwrap().uid(), 0);
    unmount(&disk.disk()).unwrap();

    mount(&disk.disk(), &place, false).unwrap();
    fs::write(place.path().join("file"), "").unwrap();
    std::os::unix::fs::chown(place.path(), Some(0), Some(0)).unwrap();
    unmount(&disk.disk()).unwrap();
    mount(&disk.disk(), &place, false).unwrap();
    assert_eq!(fs::metadata(place.path()).unwrap().uid(), 0);
}

#[test]
fn bind_mount_of_a_volume_does_not_keep_its_disk() {
    let Some(disk) = LoopDisk::try_make() else {
        return;
    };
    let place = disk.place();
    mount(&disk.disk(), &place, false).unwrap();
    let other = disk.directory.path().join("a other place");
    fs::create_dir(&other).unwrap();
    rustix::mount::mount_bind(place.path(), &other).unwrap();
    unmount(&disk.disk()).unwrap();
    assert!(mounted_paths(&disk.disk().number).unwrap().is_empty());
}

#[test]
fn file_system_grows_to_its_disk_while_it_is_in_use() {
    let Some(disk) = LoopDisk::try_make() else {
        return;
    };
    let place = disk.place();
    mount(&disk.disk(), &place, false).unwrap();
    let before = rustix::fs::statvfs(place.path()).unwrap().f_blocks;
    let root = fs::File::open(place.path()).unwrap();
    match grow(root.as_fd(), &disk.disk()) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            println!("skipped: growing needs CAP_SYS_RESOURCE");
            return;
        }
        grown => grown.unwrap(),
    }
    assert_eq!(rustix::fs::statvfs(place.path()).unwrap().f_blocks, before);
    disk.grow_to(256 << 20);
    grow(root.as_fd(), &disk.disk()).unwrap();
    let after = rustix::fs::statvfs(place.path()).unwrap().f_blocks;
    assert!(after > 6 * before, "{before} blocks became {after}");
}
