//! Making bytes durable. Every sync of the host's programs is done here.
//!
//! A sync takes as long as the disk likes, so whoever calls this must be ready to wait. Tests make
//! it wait: see [`delay_syncs`].

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, fsync, openat};

/// How long each sync takes beyond what it takes.
type Delay = Box<dyn Fn() -> Duration + Send + Sync>;

static DELAY: OnceLock<Delay> = OnceLock::new();

/// Makes every later sync of this process take longer, by as much as `delay` says at the time. For
/// tests of what a slow disk does to those who do not wait for it. Only the first call counts.
pub fn delay_syncs(delay: impl Fn() -> Duration + Send + Sync + 'static) {
    // A second test in the same process measures with the delay of the first.
    let _ = DELAY.set(Box::new(delay));
}

/// Makes the contents of an open file durable, or the entries of an open directory.
///
/// # Errors
/// What the kernel said.
pub fn sync(file: impl AsFd) -> io::Result<()> {
    if let Some(delay) = DELAY.get() {
        std::thread::sleep(delay());
    }
    Ok(fsync(file)?)
}

/// Makes the contents of a file durable.
///
/// # Errors
/// What the kernel said.
pub fn sync_file(path: &Path) -> io::Result<()> {
    sync(File::open(path)?)
}

/// Makes earlier changes to the entries of a directory durable.
///
/// # Errors
/// What the kernel said.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    sync(openat(CWD, path, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// The only test of this process that delays: others have no use for it.
    #[test]
    fn every_kind_of_sync_waits_as_long_as_it_is_told() {
        static MILLISECONDS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let now = || MILLISECONDS.load(std::sync::atomic::Ordering::SeqCst);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        delay_syncs(move || Duration::from_millis(now()));
        let timed = |work: &dyn Fn()| {
            let start = Instant::now();
            work();
            start.elapsed()
        };
        let kinds: [(&dyn Fn(), u32); 3] = [
            // The file, and the directory that names it.
            (
                &|| super::super::write_atomic(&path, b"x", 0o600).unwrap(),
                2,
            ),
            (&|| sync_file(&path).unwrap(), 1),
            (&|| sync_directory(directory.path()).unwrap(), 1),
        ];
        for (work, _) in kinds {
            work();
        }
        MILLISECONDS.store(60, std::sync::atomic::Ordering::SeqCst);
        for (work, syncs) in kinds {
            assert!(timed(work) >= Duration::from_millis(60) * syncs);
        }
        MILLISECONDS.store(0, std::sync::atomic::Ordering::SeqCst);
    }
}
