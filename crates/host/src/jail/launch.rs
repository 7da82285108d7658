//! Running `dayfly-jail`.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{InvalidSpec, JailReport, JailSpec, JailStep, REPORT_BYTES_MAX, SPEC_BYTES_MAX};
use crate::process::ProcessIdentity;

/// Launches an engine in its slot and answers once its program runs. `output` becomes its standard
/// output and standard error.
///
/// The engine is an orphan from then on: the nearest subreaper, see
/// [`crate::process::set_child_subreaper`], becomes its parent.
///
/// # Errors
/// See [`JailLaunchError`]. After [`JailLaunchError::TimedOut`] and [`JailLaunchError::NoReport`] a process may
/// be left in the slot's control group: end the group.
///
/// # Cancel safety
/// Dropping the future kills the launcher. A process may be left in the control group then too.
pub async fn launch(
    jail: &Path,
    spec: &JailSpec,
    output: OwnedFd,
    limit: Duration,
) -> Result<ProcessIdentity, JailLaunchError> {
    spec.validate()?;
    let bytes = serde_json::to_vec(spec).map_err(|source| JailLaunchError::Encode { source })?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > SPEC_BYTES_MAX {
        return Err(JailLaunchError::TooLarge);
    }
    let mut child = Command::new(jail)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::from(output))
        .env_clear()
        .current_dir("/")
        .kill_on_drop(true)
        .spawn()
        .map_err(|source| JailLaunchError::Start {
            path: jail.to_owned(),
            source,
        })?;
    let report = timeout(limit, converse(&mut child, &bytes))
        .await
        .map_err(|_| JailLaunchError::TimedOut {
            limit_ms: limit.as_millis(),
        })?
        .map_err(|source| JailLaunchError::Converse { source })?;
    read_report(&report.bytes, report.status)
}

/// Why an engine was not launched.
#[derive(Debug, thiserror::Error)]
pub enum JailLaunchError {
    #[error("the specification makes no jail")]
    InvalidSpec(#[from] InvalidSpec),
    #[error("cannot encode the specification")]
    Encode { source: serde_json::Error },
    #[error("the specification is larger than {SPEC_BYTES_MAX} bytes")]
    TooLarge,
    #[error("cannot start {path}")]
    Start { path: PathBuf, source: io::Error },
    #[error("cannot talk to the launcher")]
    Converse { source: io::Error },
    #[error("the launch took longer than {limit_ms} ms")]
    TimedOut { limit_ms: u128 },
    #[error("the launcher ended without a report ({status})")]
    NoReport { status: ExitStatus },
    #[error("cannot {step}: {detail}")]
    Failed {
        step: JailStep,
        detail: String,
        source: io::Error,
    },
}

struct Conversation {
    bytes: Vec<u8>,
    status: ExitStatus,
}

async fn converse(child: &mut Child, spec: &[u8]) -> io::Result<Conversation> {
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (mut input, output) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
    match input.write_all(spec).await {
        // It ended early; its report says why.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        other => other?,
    }
    drop(input);
    let mut bytes = Vec::new();
    // Ends when the last copy of the pipe is closed, which the engine's `exec` does.
    output
        .take(REPORT_BYTES_MAX)
        .read_to_end(&mut bytes)
        .await?;
    let status = child.wait().await?;
    Ok(Conversation { bytes, status })
}

fn read_report(bytes: &[u8], status: ExitStatus) -> Result<ProcessIdentity, JailLaunchError> {
    match serde_json::from_slice(bytes) {
        Ok(JailReport::Started { identity }) => Ok(identity),
        Ok(JailReport::Failed {
            step,
            detail,
            errno,
        }) => {
            let source =
                errno.map_or_else(|| io::Error::other("refused"), io::Error::from_raw_os_error);
            Err(JailLaunchError::Failed {
                step,
                detail,
                source,
            })
        }
        Err(_) => Err(JailLaunchError::NoReport { status }),
    }
}
