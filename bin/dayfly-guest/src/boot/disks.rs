use std::fs;
use std::io;
use std::path::PathBuf;

/// Finds the disk that the host gave this serial. Waits for the device to appear.
pub(super) fn find(serial: &str) -> io::Result<PathBuf> {
    super::wait_for(|| {
        let mut disks = fs::read_dir("/sys/block").ok()?.flatten();
        disks.find_map(|disk| {
            let is_virtio = disk.file_name().to_string_lossy().starts_with("vd");
            let text = fs::read_to_string(disk.path().join("serial")).ok()?;
            let device = PathBuf::from("/dev").join(disk.file_name());
            // The node appears a moment after the directory.
            (is_virtio && text.trim_end() == serial && device.exists()).then_some(device)
        })
    })
}
