//! A small file system that a test fills and frees.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// On which file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    Ext4,
}

/// Unmounted when this goes out of scope.
#[derive(Debug)]
pub(crate) struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    /// `None` where nobody may mount; then the test has nothing to stand on.
    #[expect(clippy::print_stderr, reason = "a test that cannot run says so")]
    pub(crate) fn new(kind: Kind, mebibytes: u64) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("mount")).unwrap();
        let disk = Self { directory };
        let mut mount = Command::new("mount");
        match kind {
            Kind::Memory => {
                let options = format!("size={mebibytes}m");
                mount.args(["-t", "tmpfs", "-o", &options, "none"]);
            }
            Kind::Ext4 => {
                let image = disk.directory.path().join("image");
                let file = std::fs::File::create_new(&image).unwrap();
                file.set_len(mebibytes << 20).unwrap();
                run(Command::new("mkfs.ext4")
                    .args(["-q", "-m", "0"])
                    .arg(&image))
                .unwrap();
                mount.args(["-o", "loop"]).arg(&image);
            }
        }
        match run(mount.arg(disk.path())) {
            Ok(()) => Some(disk),
            Err(error) => {
                let required = std::env::var_os("DAYFLY_REQUIRE_VM").is_some();
                assert!(!required, "cannot mount a small disk: {error}");
                eprintln!("skipped: cannot mount a small disk: {error}");
                None
            }
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("mount")
    }

    /// Takes the last byte.
    pub(crate) fn fill(&self) {
        let mut file = std::fs::File::create(self.filler()).unwrap();
        for length in [1 << 20, 64 << 10, 4 << 10, 1] {
            let piece = vec![b'x'; length];
            let error = loop {
                if let Err(error) = file.write_all(&piece) {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
            // Blocks are given out later than they are asked for.
            let _ = file.sync_all();
        }
    }

    pub(crate) fn free(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let mount = self.path();
        if run(Command::new("umount").arg(&mount)).is_err() {
            // Something still uses it: away from the tree at least, and gone with its last user.
            let _ = run(Command::new("umount").arg("--lazy").arg::<&Path>(&mount));
        }
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    ))
}
