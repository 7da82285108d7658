//! `dayfly cp`: one file, into or out of a sandbox, streamed.

use std::io;
use std::path::{Path, PathBuf};

use dayfly_client::{FileBody, FileContent};
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::args::CopyArgs;
use crate::commands::Session;
use crate::failure::CommandError;
use crate::places::Place;
use crate::signals::StopSignals;
use crate::{exit_status, prefixes, text};

/// The object of `cp --json`.
#[derive(Debug, Serialize)]
struct Report {
    /// Where the file is now; null: standard output.
    path: Option<String>,
    bytes: u64,
}

const DIRECTORY_HINT: &str = "pack it into one file with tar, copy that, and unpack it there";

pub(crate) async fn copy(session: &Session<'_>, args: CopyArgs) -> Result<u8, CommandError> {
    let mut signals = StopSignals::install()?;
    // Stopping drops the transfer, which removes the part of a file that has arrived.
    tokio::select! {
        outcome = transfer(session, args) => outcome,
        signal = signals.next() => Err(CommandError::Interrupted { signal }),
    }
}

async fn transfer(session: &Session<'_>, args: CopyArgs) -> Result<u8, CommandError> {
    let report = match (args.source, args.destination) {
        (Place::Guest { .. }, Place::Guest { .. }) => {
            return Err(CommandError::Usage {
                what: "both sides are in a sandbox".to_owned(),
                hint: "copy out first: dayfly cp A:/file - | dayfly cp - B:/file",
            });
        }
        (Place::Guest { sandbox, path }, to) => download(session, &sandbox, &path, to).await?,
        (from, Place::Guest { sandbox, path }) => upload(session, from, &sandbox, &path).await?,
        (Place::Local(_) | Place::Standard, Place::Local(_) | Place::Standard) => {
            return Err(CommandError::Usage {
                what: "neither side is in a sandbox".to_owned(),
                hint: "name one side ID:PATH",
            });
        }
    };
    if session.printer.is_json() && report.path.is_some() {
        session.printer.json(&report)?;
    } else {
        let words = report.path.as_deref().unwrap_or("standard output");
        let words = format!("copied {} bytes to {}", report.bytes, text::visible(words));
        session.printer.note(&words);
    }
    Ok(exit_status::OK)
}

async fn upload(
    session: &Session<'_>,
    from: Place,
    sandbox: &str,
    path: &str,
) -> Result<Report, CommandError> {
    let (body, name) = match from {
        Place::Local(local) => {
            let name = local
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            (open_local(&local).await?, name)
        }
        Place::Standard | Place::Guest { .. } => {
            (FileBody::from_reader(tokio::io::stdin(), None), None)
        }
    };
    let path = match (path.is_empty() || path.ends_with('/'), name) {
        (true, Some(name)) => format!("{path}{name}"),
        (true, None) => {
            return Err(CommandError::Usage {
                what: "the target is a directory, and standard input has no name".to_owned(),
                hint: "name the file: ID:/directory/name",
            });
        }
        (false, _) => path.to_owned(),
    };
    let id = prefixes::resolve(&session.client, sandbox).await?;
    let written = session
        .client
        .write_file(&id, &path, body)
        .await
        .map_err(|source| CommandError::call(format!("cannot write {path} in {id}"), source))?;
    Ok(Report {
        path: Some(written.path),
        bytes: written.bytes,
    })
}

async fn open_local(path: &Path) -> Result<FileBody, CommandError> {
    let failed = |source| CommandError::local(format!("cannot read {}", path.display()), source);
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    let metadata = file.metadata().await.map_err(failed)?;
    if metadata.is_dir() {
        return Err(directory(&path.display().to_string()));
    }
    // A pipe or a device has no length to tell beforehand, and a file of the kernel says zero.
    let length = Some(metadata.len()).filter(|length| metadata.is_file() && *length > 0);
    Ok(FileBody::from_reader(file, length))
}

fn directory(path: &str) -> CommandError {
    CommandError::Refused {
        what: format!("{path} is a directory, and only files can be copied"),
        hint: DIRECTORY_HINT,
    }
}

async fn download(
    session: &Session<'_>,
    sandbox: &str,
    path: &str,
    to: Place,
) -> Result<Report, CommandError> {
    if path.is_empty() {
        return Err(CommandError::Usage {
            what: "the source has no path".to_owned(),
            hint: "name the file: ID:/directory/name",
        });
    }
    let id = prefixes::resolve(&session.client, sandbox).await?;
    let failed = |source| CommandError::call(format!("cannot read {path} in {id}"), source);
    let entry = session.client.stat(&id, path).await.map_err(failed)?;
    if entry.is_dir {
        return Err(directory(path));
    }
    let mut content = session.client.read_file(&id, path).await.map_err(failed)?;
    let local = match to {
        Place::Local(local) => target(local, path)?,
        Place::Standard | Place::Guest { .. } => {
            let output = |source| CommandError::Output { source };
            let bytes = pour(&mut content, tokio::io::stdout(), failed, output).await?;
            return Ok(Report { path: None, bytes });
        }
    };
    let what = format!("cannot write {}", local.display());
    let local_failed = |source| CommandError::local(what.clone(), source);
    let bytes = if local.exists() && !local.is_file() {
        // A device or a pipe is written to, not replaced.
        let file = tokio::fs::OpenOptions::new().write(true).open(&local).await;
        pour(
            &mut content,
            file.map_err(local_failed)?,
            failed,
            local_failed,
        )
        .await?
    } else {
        let (file, part) = part_file(&local).map_err(local_failed)?.into_parts();
        let file = tokio::fs::File::from_std(file);
        let bytes = pour(&mut content, file, failed, local_failed).await?;
        part.persist(&local)
            .map_err(|error| local_failed(error.error))?;
        bytes
    };
    Ok(Report {
        path: Some(local.display().to_string()),
        bytes,
    })
}

/// Where a download goes: into a directory under the name that it had.
fn target(local: PathBuf, path: &str) -> Result<PathBuf, CommandError> {
    if !local.is_dir() {
        return Ok(local);
    }
    match Path::new(path).file_name() {
        Some(name) => Ok(local.join(name)),
        None => Err(directory(path)),
    }
}

/// A file beside the target that becomes the target when it is whole, so that a half file never
/// has the name of a whole one.
fn part_file(local: &Path) -> io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = match local.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    // As any new file: the creation mask decides. The guest's own mode is not taken over.
    let permissions = std::fs::Permissions::from_mode(0o666);
    tempfile::Builder::new()
        .prefix(".dayfly-")
        .permissions(permissions)
        .tempfile_in(directory)
}

async fn pour(
    content: &mut FileContent,
    mut to: impl AsyncWrite + Unpin,
    read_failed: impl Fn(dayfly_client::ClientError) -> CommandError,
    write_failed: impl Fn(io::Error) -> CommandError,
) -> Result<u64, CommandError> {
    let mut bytes = 0u64;
    while let Some(piece) = content.next().await.map_err(&read_failed)? {
        to.write_all(&piece).await.map_err(&write_failed)?;
        bytes += u64::try_from(piece.len()).unwrap_or(0);
    }
    to.flush().await.map_err(&write_failed)?;
    Ok(bytes)
}
