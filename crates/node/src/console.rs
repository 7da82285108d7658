//! What engines and guests said last: within its limit, and fit to be told.
//!
//! An engine outlives this process, so what it says goes to a file and not to a pipe, and a guest
//! can make it say something for every request to a device. The file is open for appending: when it
//! is cut, the next word of the engine is its beginning.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use dayfly_types::limits;
use dayfly_vmm::{Vm, file_names};

/// What stays of a file that is cut: the last words.
const KEPT_BYTES: u64 = 64 << 10;

const TOLD_MAX: usize = limits::CONSOLE_TOLD_CHARACTERS_MAX;
/// How a kernel begins to say why it gives up.
const PANIC: &str = "Kernel panic";

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

/// What matters of a guest's console, for a log or a reason. Empty where there is nothing.
pub(crate) async fn console_of(vm: &mut dyn Vm) -> String {
    match vm.console().await {
        Ok(text) => told(&text),
        Err(error) => {
            tracing::debug!(
                error = crate::error_chain(&error),
                "cannot read a guest's console"
            );
            String::new()
        }
    }
}

/// The beginning of the last panic in a guest's text, or else the end of the text, in one line.
/// Escaped, because it may be anything, and this goes to a log and a terminal.
pub(crate) fn told(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.collect();
    let in_one = |lines: &[&str]| lines.join(" | ").escape_debug().to_string();
    // Behind it are registers and calls, which are many and say less.
    if let Some(panic) = lines.iter().rposition(|line| line.contains(PANIC)) {
        let told = in_one(&lines[panic..]);
        return told.chars().take(TOLD_MAX).collect();
    }
    let told = in_one(&lines);
    let cut = told.chars().count().saturating_sub(TOLD_MAX);
    told.chars().skip(cut).collect()
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
    fn what_is_told_is_the_panic_or_the_end_in_one_plain_line() {
        assert_eq!(told(""), "");
        let text = "early\r\n\r\n\u{1b}[31mOops\r\n";
        assert_eq!(told(text), r"early | \u{1b}[31mOops");
        let long = told(&"x\u{7}".repeat(10_000));
        assert_eq!(long.len(), TOLD_MAX);
        assert!(long.is_ascii() && long.ends_with(r"x\u{7}"), "{long}");
        let registers = "RAX: 0\n".repeat(10_000);
        let panic = told(&format!("early\n[1] Kernel panic - no memory\n{registers}"));
        assert_eq!(panic.len(), TOLD_MAX);
        assert!(panic.starts_with("[1] Kernel panic - no memory | RAX: 0"));
    }

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
