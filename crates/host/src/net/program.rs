//! Running a network program in the namespace of the calling thread.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::process::{Pidfd, ProcessIdentity};

/// These programs answer in milliseconds; a busy host may make them wait for a processor.
const LIMIT: Duration = Duration::from_secs(10);
const WORDS_MAX: u64 = 256 << 10;

/// A program of the host, by every path it may have: the search path of a daemon often lacks the
/// directories of these.
#[derive(Debug, Clone, Copy)]
pub(super) struct NetworkProgram {
    places: &'static [&'static str],
}

pub(super) const NFT: NetworkProgram = NetworkProgram {
    places: &[
        "/usr/sbin/nft",
        "/usr/bin/nft",
        "/sbin/nft",
        "/usr/local/sbin/nft",
    ],
};
pub(super) const IP: NetworkProgram = NetworkProgram {
    places: &["/usr/sbin/ip", "/usr/bin/ip", "/sbin/ip", "/bin/ip"],
};

impl NetworkProgram {
    /// Runs it to its end and gives what it said. A failure carries what it complained of.
    pub(super) fn run(self, arguments: &[&str], input: &str) -> io::Result<String> {
        let place = self.places.iter().find(|place| Path::new(place).exists());
        let place = place.ok_or_else(|| {
            let name = self.places.first().copied().unwrap_or_default();
            io::Error::new(io::ErrorKind::NotFound, format!("no program {name}"))
        })?;
        let mut child = Command::new(place)
            .args(arguments)
            .env_clear()
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let ended = feed(&mut child, input).and_then(|()| wait(&child));
        if ended.is_err() {
            // Whatever it is doing, nobody waits for it any more.
            let _ = child.kill();
        }
        let status = child.wait()?;
        ended?;
        if status.success() {
            return read(child.stdout.take());
        }
        let complaint = read(child.stderr.take())?;
        Err(io::Error::other(complaint.trim().to_owned()))
    }
}

fn feed(child: &mut Child, input: &str) -> io::Result<()> {
    let Some(mut pipe) = child.stdin.take() else {
        return Ok(());
    };
    match pipe.write_all(input.as_bytes()) {
        // It has ended early, and says why on its own.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn wait(child: &Child) -> io::Result<()> {
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    // Not reaped before this returns, so the pid is its own.
    let handle = ProcessIdentity::of(pid)
        .and_then(Pidfd::open)
        .map_err(io::Error::other)?;
    if handle.wait_blocking(LIMIT) {
        Ok(())
    } else {
        Err(io::ErrorKind::TimedOut.into())
    }
}

fn read(output: Option<impl Read>) -> io::Result<String> {
    let mut words = String::new();
    if let Some(output) = output {
        output.take(WORDS_MAX).read_to_string(&mut words)?;
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_read_and_complaints_are_kept() {
        let cat = NetworkProgram {
            places: &["/bin/cat"],
        };
        assert_eq!(cat.run(&[], "words").unwrap(), "words");
        let error = cat.run(&["/no/such/file"], "").unwrap_err();
        assert!(error.to_string().contains("/no/such/file"), "{error}");
        let absent = NetworkProgram {
            places: &["/no/such/program"],
        };
        let error = absent.run(&[], "").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
