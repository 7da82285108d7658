//! Which QEMU is installed, and whether it is new enough.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

/// `file:` migration and `memory-backend-file` with `rom=` came with this release.
pub const MINIMUM: EngineVersion = EngineVersion {
    major: 8,
    minor: 2,
    micro: 0,
};

/// Printing a version takes milliseconds; a program that takes longer is not the one we want.
const VERSION_DEADLINE: Duration = Duration::from_secs(10);

/// A release of QEMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineVersion {
    pub major: u32,
    pub minor: u32,
    pub micro: u32,
}

impl EngineVersion {
    /// Reads what the program says of itself: `QEMU emulator version 10.0.2 (Debian ...)`.
    #[must_use]
    pub fn of_label(label: &str) -> Option<Self> {
        parse(label)
    }
}

impl fmt::Display for EngineVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.micro)
    }
}

/// Why the installed engine cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    #[error(
        "cannot run {program}; install QEMU {MINIMUM} or later (Debian and Ubuntu: \
         qemu-system-x86 and qemu-utils)"
    )]
    Run { program: PathBuf, source: io::Error },
    #[error("{program} did not tell its version within {limit:?}")]
    TimedOut { program: PathBuf, limit: Duration },
    #[error("{program} does not say that it is QEMU")]
    Unrecognised { program: PathBuf },
    #[error(
        "QEMU {found} is too old; install {MINIMUM} or later (Debian 13, Ubuntu 24.04, or Debian \
         12 with its backports suite: qemu-system-x86 and qemu-utils)"
    )]
    TooOld { found: EngineVersion },
}

/// Asks the program for its version and refuses one that is too old.
///
/// # Errors
/// [`VersionError`], whose text tells what to install.
///
/// # Cancel safety
/// Dropping the future ends the program.
pub async fn engine_version(program: &Path) -> Result<EngineVersion, VersionError> {
    engine_label(program).await.map(|(version, _)| version)
}

/// The same, with the line in which the program names itself and who built it.
///
/// # Errors
/// [`VersionError`], whose text tells what to install.
///
/// # Cancel safety
/// Dropping the future ends the program.
pub async fn engine_label(program: &Path) -> Result<(EngineVersion, String), VersionError> {
    let run = Command::new(program)
        .arg("--version")
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(VERSION_DEADLINE, run)
        .await
        .map_err(|_| VersionError::TimedOut {
            program: program.to_owned(),
            limit: VERSION_DEADLINE,
        })?
        .map_err(|source| VersionError::Run {
            program: program.to_owned(),
            source,
        })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let label = text.lines().next().unwrap_or_default().trim();
    let found = parse(label).ok_or_else(|| VersionError::Unrecognised {
        program: program.to_owned(),
    })?;
    if found < MINIMUM {
        return Err(VersionError::TooOld { found });
    }
    Ok((found, label.to_owned()))
}

/// Reads `QEMU emulator version 10.0.2 (Debian ...)`.
fn parse(text: &str) -> Option<EngineVersion> {
    let (_, rest) = text.lines().next()?.split_once("QEMU emulator version ")?;
    let mut numbers = rest
        .split_ascii_whitespace()
        .next()?
        .split('.')
        .map(|part| {
            let digits = part
                .find(|c: char| !c.is_ascii_digit())
                .map_or(part, |end| &part[..end]);
            digits.parse().ok()
        });
    Some(EngineVersion {
        major: numbers.next()??,
        minor: numbers.next()??,
        micro: numbers.next().flatten().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_distributions_are_read() {
        let debian = "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)\nCopyright (c)";
        let parsed = parse(debian).unwrap();
        assert_eq!(
            parsed,
            EngineVersion {
                major: 10,
                minor: 0,
                micro: 2
            }
        );
        let candidate = parse("QEMU emulator version 9.1-rc1").unwrap();
        assert_eq!(
            candidate,
            EngineVersion {
                major: 9,
                minor: 1,
                micro: 0
            }
        );
        assert!(parse("bash, version 5").is_none());
        assert!(parse("").is_none());
    }

    #[test]
    fn the_minimum_is_compared_by_number() {
        assert!(
            EngineVersion {
                major: 7,
                minor: 20,
                micro: 0
            } < MINIMUM
        );
        assert!(
            EngineVersion {
                major: 10,
                minor: 0,
                micro: 0
            } > MINIMUM
        );
    }

    #[tokio::test]
    async fn a_missing_program_tells_what_to_install() {
        let error = engine_version(Path::new("/nonexistent/qemu"))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("qemu-system-x86"), "{error}");
    }
}
