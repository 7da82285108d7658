//! What somebody tries who has taken over an engine, from inside its jail.
//!
//! The program is an interpreter that every Debian has: it makes any call by its number, needs no
//! file beside itself, and is executed in the place of the engine.

use std::fmt;
use std::path::PathBuf;

/// Executed in the place of the engine.
pub const PROGRAM: &str = "/usr/bin/perl";

const SCRIPT: &str = include_str!("engine.pl");

/// One thing to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// A byte of a file.
    Read(PathBuf),
    /// To open a file so that it could be changed.
    Write(PathBuf),
    /// A new file.
    Create(PathBuf),
    /// So many MiB at the end of a file.
    Fill(PathBuf, u64),
    /// A byte of a file, so far from its start.
    Place(PathBuf, u64),
    /// These bytes to a port of the loopback address.
    Reach(u16, String),
    /// So many MiB of memory.
    Take(u64),
    /// A call of the kernel by its number, with numbers or text for arguments.
    Call(i64, Vec<String>),
}

impl Attempt {
    /// A call with numbers for arguments.
    #[must_use]
    pub fn call(number: i64, arguments: &[i64]) -> Self {
        Self::Call(number, arguments.iter().map(i64::to_string).collect())
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(f, "read\t{}", path.display()),
            Self::Write(path) => write!(f, "write\t{}", path.display()),
            Self::Create(path) => write!(f, "create\t{}", path.display()),
            Self::Fill(path, mebibytes) => write!(f, "fill\t{}\t{mebibytes}", path.display()),
            Self::Place(path, offset) => write!(f, "place\t{}\t{offset}", path.display()),
            Self::Reach(port, bytes) => write!(f, "reach\t{port}\t{bytes}"),
            Self::Take(mebibytes) => write!(f, "take\t{mebibytes}"),
            Self::Call(number, arguments) => write!(f, "call\t{number}\t{}", arguments.join("\t")),
        }
    }
}

/// The arguments of [`PROGRAM`].
#[must_use]
pub fn arguments(attempts: &[Attempt]) -> Vec<String> {
    let words = ["-e", SCRIPT, "--"].map(str::to_owned);
    let attempts = attempts.iter().map(ToString::to_string);
    words.into_iter().chain(attempts).collect()
}

/// What came of one attempt. There is none of the attempt that ended the process, nor of those
/// behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    Done,
    /// With the kernel's number for the error.
    Refused(i32),
}

/// Reads what the program printed.
#[must_use]
pub fn outcomes(output: &str) -> Vec<Came> {
    let outcome = |line: &str| match line.split_once(' ')? {
        ("1", _) => Some(Came::Done),
        ("0", error) => error.parse().ok().map(Came::Refused),
        _ => None,
    };
    output.lines().filter_map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Outside of a jail everything succeeds that can: this is what the attempts are compared with.
    #[test]
    fn without_a_jail_each_attempt_does_what_it_says() {
        let directory = std::env::temp_dir().join(format!("attempts-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let file = directory.join("file");
        let sink = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let attempts = [
            Attempt::Create(file.clone()),
            Attempt::Create(file.clone()),
            Attempt::Read(file.clone()),
            Attempt::Write(file.clone()),
            Attempt::Fill(file.clone(), 2),
            Attempt::Place(file.clone(), 4 << 20),
            Attempt::Take(16),
            Attempt::Reach(sink.local_addr().unwrap().port(), "bytes".to_owned()),
            Attempt::call(39, &[]),
            Attempt::Call(
                83,
                vec![directory.join("made").display().to_string(), "448".into()],
            ),
        ];
        let output = Command::new(PROGRAM).args(arguments(&attempts)).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        let mut wanted = [Came::Done; 10];
        wanted[1] = Came::Refused(17);
        let made = directory.join("made").is_dir();
        let length = std::fs::metadata(&file).unwrap().len();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(outcomes(&text), wanted);
        assert!(made);
        assert_eq!(length, (4 << 20) + 1);
        let mut received = String::new();
        let (mut stream, _) = sink.accept().unwrap();
        std::io::Read::read_to_string(&mut stream, &mut received).unwrap();
        assert_eq!(received, "bytes");
    }
}
