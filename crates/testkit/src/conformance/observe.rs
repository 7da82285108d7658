//! What can be seen of a machine from outside.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dayfly_guest_proto::{Nonce, Opening, PortRole};
use dayfly_vmm::{EngineProcess, Slot, file_names};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};

use super::{Claim, Failure, ensure};

/// Bytes that were on their way before the question arrive within this.
const QUIET: Duration = Duration::from_millis(100);
/// How often the question is put again.
const REPEAT: Duration = Duration::from_millis(250);
/// A guest that has not answered in this time is taken to stand still.
const SILENCE: Duration = Duration::from_millis(700);
/// A running guest answers within this, also on a busy host under emulation.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Fails unless the guest answers on its control port.
///
/// # Errors
/// That it does not.
pub async fn ensure_running(slot: &Slot) -> Claim {
    ensure!(
        guest_answers(slot, ANSWER_LIMIT).await,
        "the guest does not answer"
    );
    Ok(())
}

/// Fails if the guest answers on its control port.
///
/// # Errors
/// That it does.
pub async fn ensure_still(slot: &Slot) -> Claim {
    ensure!(
        !guest_answers(slot, SILENCE).await,
        "the guest answers while it should stand still"
    );
    Ok(())
}

/// Whether the guest says anything at all to the opening of a conversation.
pub(crate) async fn guest_answers(slot: &Slot, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if let Ok(true) = timeout(limit, ask(slot, deadline))
            .await
            .unwrap_or(Ok(false))
        {
            return true;
        }
        sleep(Duration::from_millis(20)).await;
    }
    false
}

async fn ask(slot: &Slot, deadline: Instant) -> io::Result<bool> {
    let connect = |name: &str| UnixStream::connect(slot.run_directory.join(name));
    let mut control = connect(file_names::CONTROL_SOCKET).await?;
    // A guest may wait for both ports before it speaks on either.
    let mut bulk = connect(file_names::BULK_SOCKET).await?;
    let mut buffer = [0; 4096];
    while let Ok(count) = timeout(QUIET, control.read(&mut buffer)).await {
        if count? == 0 {
            return Ok(false);
        }
    }
    let opening = |port| Opening::new(Nonce([0x5a; 16]), port).encode();
    bulk.write_all(&opening(PortRole::Bulk)).await?;
    while Instant::now() < deadline {
        control.write_all(&opening(PortRole::Control)).await?;
        if let Ok(count) = timeout(REPEAT, control.read(&mut buffer)).await {
            return Ok(count? > 0);
        }
    }
    Ok(false)
}

/// Processor time that a process has used, in clock ticks.
pub(crate) fn processor_ticks(process: EngineProcess) -> Result<u64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid))?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no command name in stat")?;
    let fields: Vec<_> = fields.split_ascii_whitespace().collect();
    let number = |index: usize| {
        fields
            .get(index)
            .and_then(|field| field.parse::<u64>().ok())
    };
    let user = number(11).ok_or("no user time in stat")?;
    let system = number(12).ok_or("no system time in stat")?;
    Ok(user + system)
}

/// The permissions of each mapping of a file, such as `rw-p`.
pub(crate) fn mappings_of(process: EngineProcess, file: &Path) -> Result<Vec<String>, Failure> {
    let inode = std::fs::metadata(file)?.ino().to_string();
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.pid))?;
    let permissions = maps.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        (fields.get(4) == Some(&inode.as_str())).then(|| fields[1].to_owned())
    });
    Ok(permissions.collect())
}

/// Whether a process of `/proc` still runs. One that waits to be reaped does not.
pub(crate) fn is_alive(process: EngineProcess) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{}/stat", process.pid)) else {
        return false;
    };
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return false;
    };
    let fields: Vec<_> = fields.split_ascii_whitespace().collect();
    let is_zombie = fields.first() == Some(&"Z");
    let start = fields.get(19).and_then(|field| field.parse().ok());
    !is_zombie && start == Some(process.start_time_ticks)
}

pub(crate) async fn hash(file: &Path) -> Result<blake3::Hash, Failure> {
    let file: PathBuf = file.to_owned();
    let work = move || {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(std::fs::File::open(file)?)?;
        Ok::<_, io::Error>(hasher.finalize())
    };
    Ok(tokio::task::spawn_blocking(work).await??)
}
