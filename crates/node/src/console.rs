//! Keeps what an engine says within its limit.
//!
//! An engine outlives this process, so what it says goes to a file and not to a pipe, and a guest
//! can make it say something for every request to a device. The file is open for appending: when it
//! is cut, the next word of the engine is its beginning.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use dayfly_types::limits;
use dayfly_vmm::file_names;

/// What stays of a file that is cut: the last words.
const KEPT_BYTES: u64 = 64 << 10;

/// Cuts the file if it is over its limit. Answers whether it was.
///
/// # Errors
/// When it cannot be read or cut.
pub(crate) fn cut_console(run_directory: &Path) -> io::Result<bool> {
    let Some(mut file) = open(&run_directory.join(file_names::CONSOLE_LOG))? else {
        return Ok(false);
    };
    let length = file.metadata()?.len();
    if length <= limits::CONSOLE_BYTES_MAX {
        return Ok(false);
    }
    let mut last = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(KEPT_BYTES)))?;
    // The engine goes on writing; what it adds meanwhile is cut as well.
    (&file).take(KEPT_BYTES).read_to_end(&mut last)?;
    file.set_len(0)?;
    file.write_all(&last)?;
    Ok(true)
}

/// The file, unless there is none or somebody has put something else in its place.
fn open(path: &Path) -> io::Result<Option<File>> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .append(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    Ok((metadata.is_file() && metadata.nlink() == 1).then_some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_talkative_engine_keeps_its_last_words_and_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(file_names::CONSOLE_LOG);
        assert!(!cut_console(directory.path()).unwrap(), "there is none");
        let mut engine = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        let limit = usize::try_from(limits::CONSOLE_BYTES_MAX).unwrap();
        engine.write_all(&vec![b'x'; limit]).unwrap();
        assert!(!cut_console(directory.path()).unwrap(), "at its limit");
        engine.write_all(b"guest says index 65535\n").unwrap();
        assert!(cut_console(directory.path()).unwrap());
        engine.write_all(b"and on\n").unwrap();
        let left = std::fs::read(&path).unwrap();
        assert_eq!(left.len() as u64, KEPT_BYTES + 7);
        assert!(left.ends_with(b"guest says index 65535\nand on\n"));
    }

    #[test]
    fn what_is_not_the_engines_file_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        let length = usize::try_from(limits::CONSOLE_BYTES_MAX).unwrap() + 1;
        std::fs::write(&victim, vec![b'x'; length]).unwrap();
        let run = directory.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let log = run.join(file_names::CONSOLE_LOG);
        std::os::unix::fs::symlink(&victim, &log).unwrap();
        assert!(cut_console(&run).is_err(), "a link was followed");
        std::fs::remove_file(&log).unwrap();
        std::fs::hard_link(&victim, &log).unwrap();
        assert!(!cut_console(&run).unwrap());
        assert_eq!(std::fs::metadata(&victim).unwrap().len(), length as u64);
    }
}
