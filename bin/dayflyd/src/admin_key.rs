//! The administrator's key: written once, kept by its digest elsewhere, and replaced on request.
//!
//! ```text
//!   admin.key        the key that works
//!   admin.key.next   one that shall take its place
//! ```
//! Whoever wants another key writes it beside the one that works. The daemon takes it over by one
//! rename, and starts control with its digest: before the rename the old key is in the file and
//! works, behind it the new one is and does, whatever is cut short.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dayfly_host::files::{sync_directory, write_atomic};
use dayfly_host::process::{Pidfd, ProcessIdentity};
use dayfly_installation::{DataDirectory, RunningDaemon, is_key_accepted};
use rustix::process::Signal;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::args::InstallationArguments;

const RANDOM_BYTES: usize = 32;
const MODE: u32 = 0o600;
/// From the signal until control serves with the new key: it may have to end what is under way.
const TAKEN_OVER_LIMIT: Duration = Duration::from_secs(60);
/// Control says nothing to strangers when it begins to serve, so it is asked.
const ASK_PAUSE: Duration = Duration::from_millis(100);

/// Reads the key, or makes it at the first start. One that waits to take its place does so.
pub(crate) fn ensure(path: &Path) -> Result<String> {
    take_next(path)?;
    match read(path)? {
        Some(key) => Ok(key),
        None => {
            let key = draw()?;
            write(path, &key)?;
            Ok(key)
        }
    }
}

fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("cannot read the administrator's key"),
    }
}

fn write(path: &Path, key: &str) -> Result<()> {
    write_atomic(path, format!("{key}\n").as_bytes(), MODE)
        .context("cannot write the administrator's key")
}

fn next_of(path: &Path) -> PathBuf {
    path.with_extension("key.next")
}

/// Puts the key that waits into the place of the one that is. Without one nothing happens.
pub(crate) fn take_next(path: &Path) -> Result<()> {
    match fs::rename(next_of(path), path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).context("cannot take over the next administrator's key"),
    }
    let directory = path.parent().context("the key has no directory")?;
    sync_directory(directory).context("cannot make the new key durable")
}

/// A new key.
pub(crate) fn draw() -> Result<String> {
    let mut random = [0_u8; RANDOM_BYTES];
    getrandom::fill(&mut random).context("no randomness")?;
    Ok(format!("dfk_{}", hex::encode(random)))
}

/// What may be known of a key without knowing it.
pub(crate) fn digest(key: &str) -> String {
    hex::encode(Sha256::digest(key.as_bytes()))
}

/// How a key was replaced. The key itself is in its file alone.
#[derive(Debug, Serialize)]
pub(crate) struct Rotated {
    pub(crate) file: PathBuf,
    /// Whether a daemon runs that refuses the old one already. Else its next start does.
    pub(crate) in_force: bool,
}

/// Replaces the key. The old one is refused when this returns.
pub(crate) async fn rotate(arguments: &InstallationArguments) -> Result<Rotated> {
    let directory = DataDirectory::open(&arguments.data_dir)?;
    let file = directory.admin_key();
    let old = read(&file)?.context("there is no administrator's key; start the daemon once")?;
    let new = draw()?;
    let running = directory.running()?;
    let in_force = running.is_some();
    match running {
        Some(running) => {
            write(&next_of(&file), &new)?;
            hand_over(&directory, &running, &old, &new).await?;
        }
        None => {
            // No daemon may begin with the old one while this one is written.
            let _lock = directory.lock()?;
            write(&file, &new)?;
        }
    }
    Ok(Rotated { file, in_force })
}

async fn hand_over(
    directory: &DataDirectory,
    running: &RunningDaemon,
    old: &str,
    new: &str,
) -> Result<()> {
    let pid = i32::try_from(running.pid).context("the daemon has no pid")?;
    let daemon = ProcessIdentity::of(pid).and_then(Pidfd::open);
    let daemon = daemon.context("the daemon has ended; try again")?;
    daemon
        .signal(Signal::HUP)
        .context("cannot tell the daemon of the new key")?;
    let end = Instant::now() + TAKEN_OVER_LIMIT;
    loop {
        // Not being answered is neither: control is being started again.
        let is_old_refused = matches!(is_key_accepted(directory, old).await, Ok(false));
        let is_new_taken = matches!(is_key_accepted(directory, new).await, Ok(true));
        if is_old_refused && is_new_taken {
            return Ok(());
        }
        if Instant::now() > end {
            bail!(
                "the daemon does not go by the new key after {} s; it takes it over at its next \
                 start at the latest, and until then the key in {} is the one that works",
                TAKEN_OVER_LIMIT.as_secs(),
                directory.admin_key().display()
            );
        }
        tokio::time::sleep(ASK_PAUSE).await;
    }
}

/// For a person.
pub(crate) fn render(rotated: &Rotated) -> String {
    let when = if rotated.in_force {
        "the old one is refused"
    } else {
        "the old one is refused from the next start on"
    };
    format!("the new key is in {}; {when}", rotated.file.display())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_rotation_that_was_cut_short_leaves_the_key_that_works_in_the_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("admin.key");
        let old = ensure(&path).unwrap();
        let new = draw().unwrap();
        write(&next_of(&path), &new).unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some(old.as_str()));
        // The next start completes it, once.
        assert_eq!(ensure(&path).unwrap(), new);
        assert_eq!(ensure(&path).unwrap(), new);
        assert!(!next_of(&path).exists());
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, MODE);
    }

    #[tokio::test]
    async fn without_a_daemon_the_file_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let arguments = InstallationArguments {
            data_dir: place.path().to_owned(),
            json: false,
        };
        assert!(rotate(&arguments).await.is_err(), "there was none");
        let path = place.path().join("admin.key");
        let old = ensure(&path).unwrap();
        let rotated = rotate(&arguments).await.unwrap();
        assert!(!rotated.in_force);
        let new = read(&path).unwrap().unwrap();
        assert_ne!(new, old);
        assert!(
            !render(&rotated).contains(&new),
            "it is told to whoever looks on"
        );
    }
}
