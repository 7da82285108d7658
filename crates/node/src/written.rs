//! What an engine has written into its run directory.
//!
//! The directory is the engine's, and an engine may be taken over: nothing in it is followed, and
//! there is an end to how much of it is looked at.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dayfly_types::limits;

/// MiB that the layers of the writable disk take on the host's disk, rounded down: what is owed to
/// a sandbox is rather overrated.
pub(crate) fn written_mib(run_directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(run_directory) else {
        return 0;
    };
    let layers = entries
        .take(limits::RUN_DIRECTORY_ENTRIES_MAX)
        .filter_map(Result::ok)
        .filter(|entry| is_writable_layer(&entry.file_name().to_string_lossy()))
        // Does not follow links.
        .filter_map(|entry| entry.metadata().ok())
        .filter(std::fs::Metadata::is_file);
    let blocks: u64 = layers.map(|metadata| metadata.blocks()).sum();
    (blocks * 512) >> 20
}

/// `disk.img` and the layers that later captures put in its place.
fn is_writable_layer(name: &str) -> bool {
    name.starts_with("disk") && name.ends_with(".img")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_layers_of_the_disk_count_and_no_link_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, mib: usize| {
            std::fs::write(directory.path().join(name), vec![1; mib << 20]).unwrap();
        };
        write("disk.img", 3);
        write("disk-1.img", 2);
        write("spare0.img", 8);
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(elsewhere.path(), vec![1; 9 << 20]).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), directory.path().join("disk-2.img")).unwrap();
        assert_eq!(written_mib(directory.path()), 5);
        assert_eq!(written_mib(Path::new("/nonexistent")), 0);
    }
}
