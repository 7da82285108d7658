//! `dayfly cp`: a file or a directory, into or out of a sandbox, streamed.

use std::io;
use std::path::{Path, PathBuf};

use dayfly_client::{ClientError, FileBody, FileContent, ReadOptions, WriteOptions};
use dayfly_types::ErrorCode;
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::files::args::CopyArgs;
use crate::files::copy_progress::{self, Counted, Moved};
use crate::files::cp_tree;
use crate::files::places::Place;
use crate::sandbox::prefixes;
use crate::{exit_status, signals, text};

/// The object of `cp --json`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Where the file is now; null: standard output.
    pub(crate) path: Option<String>,
    pub(crate) bytes: u64,
    /// How many files a directory had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<u64>,
}

pub(crate) async fn copy(session: &Session<'_>, args: CopyArgs) -> Result<u8, CommandError> {
    // Stopping drops the transfer, which removes the part of a file that has arrived.
    signals::unless_stopped(transfer(session, args)).await
}

async fn transfer(session: &Session<'_>, args: CopyArgs) -> Result<u8, CommandError> {
    let user = args.user.as_deref();
    let report = match (args.source, args.destination) {
        (Place::Guest { .. }, Place::Guest { .. }) => {
            return Err(CommandError::Usage {
                what: "both sides are in a sandbox".to_owned(),
                hint: "copy out first: dayfly cp A:/file - | dayfly cp - B:/file",
            });
        }
        (Place::Guest { sandbox, path }, to) => {
            download(session, &sandbox, &path, to, user).await?
        }
        (from, Place::Guest { sandbox, path }) => {
            upload(session, from, &sandbox, &path, user).await?
        }
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
        let to = report.path.as_deref().unwrap_or("standard output");
        let what = match report.files {
            Some(1) => "1 file".to_owned(),
            Some(files) => format!("{files} files"),
            None => format!("{} bytes", report.bytes),
        };
        let words = format!("copied {what} to {}", text::visible(to));
        session.printer.note(&words);
    }
    Ok(exit_status::OK)
}

async fn upload(
    session: &Session<'_>,
    from: Place,
    sandbox: &str,
    path: &str,
    user: Option<&str>,
) -> Result<Report, CommandError> {
    let moved = Moved::default();
    let (body, length, name) = match from {
        Place::Local(local) if local.is_dir() => {
            let id = prefixes::resolve(&session.client, sandbox).await?;
            let into = directory_in_guest(session, &id, path, &local, user).await?;
            return cp_tree::upload(session, local, &id, &into, user).await;
        }
        Place::Local(local) => {
            let name = local
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            let (body, length) = open_local(&local, &moved).await?;
            (body, length, name)
        }
        Place::Standard | Place::Guest { .. } => {
            let input = Counted::new(tokio::io::stdin(), &moved);
            (FileBody::from_reader(input, None), None, None)
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
    let options = WriteOptions {
        user: user.map(str::to_owned),
        ..WriteOptions::default()
    };
    let sending = session.client.write_file_with(&id, &path, body, &options);
    let written = copy_progress::show(session.printer, &moved, length, sending).await;
    let written = written.map_err(|source| {
        CommandError::call(format!("cannot write {path} in {id}"), source).about(Subject::File)
    })?;
    Ok(Report {
        path: Some(written.path),
        bytes: written.bytes,
        files: None,
    })
}

/// Where the content of a local directory goes: below a directory that is there under its own
/// name, else to the path itself. `DIRECTORY/.` names the content alone.
async fn directory_in_guest(
    session: &Session<'_>,
    id: &str,
    path: &str,
    local: &Path,
    user: Option<&str>,
) -> Result<String, CommandError> {
    let path = if path.is_empty() { "." } else { path };
    let local_text = local.as_os_str().to_string_lossy();
    let is_content = local_text == "." || local_text.ends_with("/.");
    let name = match local.file_name() {
        Some(name) if !is_content => name.to_string_lossy().into_owned(),
        Some(_) | None => return Ok(path.to_owned()),
    };
    let is_there = match session.client.stat_as(id, path, user).await {
        Ok(entry) => entry.is_dir || entry.is_symlink,
        Err(error) if error.api_code() == Some(ErrorCode::NotFound) => path.ends_with('/'),
        Err(source) => {
            let what = format!("cannot look at {path} in {id}");
            return Err(CommandError::call(what, source).about(Subject::File));
        }
    };
    if is_there {
        return Ok(match path.trim_end_matches('/') {
            "." => name,
            directory => format!("{directory}/{name}"),
        });
    }
    Ok(path.to_owned())
}

async fn open_local(path: &Path, moved: &Moved) -> Result<(FileBody, Option<u64>), CommandError> {
    let failed = |source| CommandError::local(format!("cannot read {}", path.display()), source);
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    let metadata = file.metadata().await.map_err(failed)?;
    // A pipe or a device has no length to tell beforehand, and a file of the kernel says zero.
    let length = Some(metadata.len()).filter(|length| metadata.is_file() && *length > 0);
    let file = Counted::new(file, moved);
    Ok((FileBody::from_reader(file, length), length))
}

async fn download(
    session: &Session<'_>,
    sandbox: &str,
    path: &str,
    to: Place,
    user: Option<&str>,
) -> Result<Report, CommandError> {
    if path.is_empty() {
        return Err(CommandError::Usage {
            what: "the source has no path".to_owned(),
            hint: "name the file: ID:/directory/name",
        });
    }
    let id = prefixes::resolve(&session.client, sandbox).await?;
    let failed = |source| {
        CommandError::call(format!("cannot read {path} in {id}"), source).about(Subject::File)
    };
    let client = &session.client;
    let entry = client.stat_as(&id, path, user).await.map_err(failed)?;
    let mut content = if entry.is_dir {
        match &to {
            Place::Local(local) => {
                let into = target(local.clone(), path);
                return cp_tree::download(session, &id, path, &into, user).await;
            }
            // As an archive, for a program that reads one.
            Place::Standard | Place::Guest { .. } => client.download_tree(&id, path, user).await,
        }
    } else {
        let options = ReadOptions {
            user: user.map(str::to_owned),
            ..ReadOptions::default()
        };
        client.read_file_with(&id, path, &options).await
    }
    .map_err(failed)?;
    let (moved, length) = (Moved::default(), content.length());
    let pouring = save(&mut content, path, to, &moved, failed);
    copy_progress::show(session.printer, &moved, length, pouring).await
}

/// Writes one file to its place on this machine.
async fn save(
    content: &mut FileContent,
    path: &str,
    to: Place,
    moved: &Moved,
    failed: impl Fn(ClientError) -> CommandError,
) -> Result<Report, CommandError> {
    let report = |path: Option<String>| Report {
        path,
        bytes: moved.get(),
        files: None,
    };
    let local = match to {
        Place::Local(local) => target(local, path),
        Place::Standard | Place::Guest { .. } => {
            let output = |source| CommandError::Output { source };
            pour(content, tokio::io::stdout(), moved, failed, output).await?;
            return Ok(report(None));
        }
    };
    let what = format!("cannot write {}", local.display());
    let local_failed = |source| CommandError::local(what.clone(), source);
    if local.exists() && !local.is_file() {
        // A device or a pipe is written to, not replaced.
        let file = tokio::fs::OpenOptions::new().write(true).open(&local).await;
        let file = file.map_err(local_failed)?;
        pour(content, file, moved, failed, local_failed).await?;
    } else {
        let (file, part) = part_file(&local).map_err(local_failed)?.into_parts();
        let file = tokio::fs::File::from_std(file);
        pour(content, file, moved, failed, local_failed).await?;
        part.persist(&local)
            .map_err(|error| local_failed(error.error))?;
    }
    Ok(report(Some(local.display().to_string())))
}

/// Where a download goes: into a directory under the name that it had, if it had one.
fn target(local: PathBuf, path: &str) -> PathBuf {
    match Path::new(path).file_name() {
        Some(name) if local.is_dir() => local.join(name),
        Some(_) | None => local,
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
    moved: &Moved,
    read_failed: impl Fn(ClientError) -> CommandError,
    write_failed: impl Fn(io::Error) -> CommandError,
) -> Result<(), CommandError> {
    while let Some(piece) = content.next().await.map_err(&read_failed)? {
        to.write_all(&piece).await.map_err(&write_failed)?;
        moved.add(piece.len());
    }
    to.flush().await.map_err(&write_failed)
}
