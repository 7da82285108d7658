//! A file system of the test's own, small enough to be filled.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

/// A small file system on a loop device, unmounted when this goes out of scope.
#[derive(Debug)]
pub struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    /// Makes one in a directory of its own.
    ///
    /// # Errors
    /// When it cannot be made or mounted.
    pub fn new(beside: &Path, size_mib: u64) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("e2e-full-")
            .tempdir_in(beside)?;
        std::fs::create_dir(directory.path().join("mount"))?;
        let disk = Self { directory };
        let image = disk.directory.path().join("image");
        std::fs::File::create_new(&image)?.set_len(size_mib << 20)?;
        run(Command::new("mkfs.ext4")
            .args(["-q", "-m", "0"])
            .arg(&image))?;
        run(Command::new("mount")
            .args(["-o", "loop"])
            .arg(&image)
            .arg(disk.path()))?;
        // Engines run as users of their own and must get to their files.
        for path in [disk.directory.path(), &disk.path()] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(path, mode)?;
        }
        Ok(disk)
    }

    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("mount")
    }

    /// What is free.
    ///
    /// # Errors
    /// When the file system does not say.
    pub fn left_mib(&self) -> Result<u64> {
        let space = rustix::fs::statvfs(self.path())?;
        Ok((space.f_bavail * space.f_frsize) >> 20)
    }

    /// Takes room until so much is left.
    ///
    /// # Errors
    /// When more is left.
    pub fn fill(&self, left_mib: u64) -> Result<()> {
        let wanted = self.left_mib()?.saturating_sub(left_mib);
        let file = self.path().join(format!("fill-{left_mib}"));
        let length = format!("{wanted}M");
        run(Command::new("fallocate").args(["-l", &length]).arg(file))?;
        ensure!(
            self.left_mib()? <= left_mib,
            "{} MiB left",
            self.left_mib()?
        );
        Ok(())
    }

    /// Takes the last byte.
    ///
    /// # Errors
    /// When there is nothing to take it with.
    pub fn fill_up(&self) -> Result<()> {
        let zeros = std::fs::read("/proc/self/exe")?;
        // Other names than those of an earlier time, whose files would be emptied first.
        let time = std::time::UNIX_EPOCH.elapsed()?.as_nanos();
        for number in 0.. {
            let file = self.path().join(format!("last-{time}-{number}"));
            if std::fs::write(&file, &zeros).is_err() {
                break;
            }
        }
        // Blocks are given out later than they are asked for.
        rustix::fs::sync();
        let mut number = 0;
        while std::fs::write(self.path().join(format!("block-{time}-{number}")), b"x").is_ok() {
            number += 1;
        }
        Ok(())
    }

    /// Gives back everything that was taken.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn empty(&self) -> Result<()> {
        for entry in std::fs::read_dir(self.path())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_ours = ["fill-", "last-", "block-"]
                .iter()
                .any(|prefix| name.starts_with(prefix));
            if is_ours {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let mount = self.path();
        if run(Command::new("umount").arg(&mount)).is_err() {
            // Something still uses it: away from the tree at least, and gone with its last user.
            let _ = run(Command::new("umount").arg("--lazy").arg(&mount));
        }
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
