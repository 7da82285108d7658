//! The guest's disks, by the serials that the host gave them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The kernel counts the size of every disk in these.
const SECTOR_BYTES: u64 = 512;

/// A disk that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) device: PathBuf,
    /// `major:minor`, as the kernel's own tables name it.
    pub(crate) number: String,
    pub(crate) bytes: u64,
}

/// Finds the disk that the host gave this serial, if it is there.
pub(crate) fn look(serial: &str) -> Option<Disk> {
    let mut disks = fs::read_dir("/sys/block").ok()?.flatten();
    disks.find_map(|disk| {
        let is_virtio = disk.file_name().to_string_lossy().starts_with("vd");
        let device = PathBuf::from("/dev").join(disk.file_name());
        let is_it = is_virtio && attribute(&disk.path(), "serial")? == serial;
        // The node appears a moment after the directory.
        if !is_it || !device.exists() {
            return None;
        }
        let sectors: u64 = attribute(&disk.path(), "size")?.parse().ok()?;
        Some(Disk {
            device,
            number: attribute(&disk.path(), "dev")?,
            bytes: sectors.saturating_mul(SECTOR_BYTES),
        })
    })
}

/// Takes a disk that nothing uses from its driver and gives it back, which asks for its size and
/// whether it can be written, as at boot.
pub(crate) fn look_afresh(disk: &Disk) -> io::Result<()> {
    let name = disk.device.file_name().unwrap_or_default();
    let device = fs::canonicalize(Path::new("/sys/block").join(name).join("device"))?;
    let device = device.file_name().unwrap_or_default().as_encoded_bytes();
    let driver = Path::new("/sys/bus/virtio/drivers/virtio_blk");
    fs::write(driver.join("unbind"), device)?;
    fs::write(driver.join("bind"), device)
}

fn attribute(disk: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(disk.join(name)).ok()?;
    Some(text.trim_end().to_owned())
}
