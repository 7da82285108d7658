//! Directories of `dayfly cp`, as archives on their way.

use std::io;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};

use dayfly_client::{ClientError, FileBody};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::files::copy_progress::{self, Counted, Moved};
use crate::files::cp::Report;
use crate::files::local_tree::{self, TreeCount};
use crate::text;

/// Sends a local directory. `into` is where its content goes.
pub(crate) async fn upload(
    session: &Session<'_>,
    local: PathBuf,
    id: &str,
    into: &str,
    user: Option<&str>,
) -> Result<Report, CommandError> {
    let what = format!("cannot read {}", local.display());
    let (ours, theirs) = pair(&what)?;
    let packing: JoinHandle<io::Result<TreeCount>> =
        spawn_blocking(move || local_tree::pack(&local, theirs));
    let moved = Moved::default();
    let body = FileBody::from_reader(Counted::new(ours, &moved), None);
    let sending = session.client.upload_tree(id, into, user, body);
    let sent = copy_progress::show(session.printer, &moved, None, sending).await;
    let packed = packing
        .await
        .unwrap_or_else(|_| Err(io::Error::other("it ended")));
    // A failure here breaks the archive, which the server then refuses: this is the reason.
    let is_local = packed
        .as_ref()
        .is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe);
    if is_local && let Err(source) = packed {
        return Err(CommandError::local(what, source));
    }
    let written = sent.map_err(|source| {
        CommandError::call(format!("cannot write {into} in {id}"), source).about(Subject::File)
    })?;
    let packed = packed.unwrap_or_default();
    for path in &packed.skipped {
        let path = text::visible(&path.display().to_string());
        session
            .printer
            .warning(&format!("{path} is no file, directory or link; left out"));
    }
    Ok(Report {
        path: Some(written.path),
        bytes: written.bytes,
        files: Some(packed.files),
    })
}

/// Fetches a directory of a sandbox. `into` is where its content goes.
pub(crate) async fn download(
    session: &Session<'_>,
    id: &str,
    path: &str,
    into: &Path,
    user: Option<&str>,
) -> Result<Report, CommandError> {
    let failed = |source| {
        CommandError::call(format!("cannot read {path} in {id}"), source).about(Subject::File)
    };
    let content = session.client.download_tree(id, path, user).await;
    let mut content = content.map_err(failed)?;
    let what = format!("cannot write {}", into.display());
    let (mut ours, theirs) = pair(&what)?;
    let target = into.to_owned();
    let unpacking = spawn_blocking(move || local_tree::unpack(theirs, &target));
    let moved = Moved::default();
    let pouring = async {
        while let Some(piece) = content.next().await? {
            moved.add(piece.len());
            // Whoever unpacks has stopped, and says why.
            if ours.write_all(&piece).await.is_err() {
                break;
            }
        }
        let _ = ours.shutdown().await;
        Ok::<(), ClientError>(())
    };
    let poured = copy_progress::show(session.printer, &moved, None, pouring).await;
    drop(ours);
    let unpacked = unpacking
        .await
        .unwrap_or_else(|_| Err(io::Error::other("it ended")));
    if let Err(source) = poured {
        return Err(CommandError::Refused {
            what: format!("the copy of {path} broke off: {source}"),
            hint: "perhaps a file in it cannot be read by that user; try --user root",
        });
    }
    let count = unpacked.map_err(|source| CommandError::local(what, source))?;
    Ok(Report {
        path: Some(into.display().to_string()),
        bytes: moved.get(),
        files: Some(count.files),
    })
}

/// Two ends of a pipe, one for each world.
fn pair(what: &str) -> Result<(UnixStream, BlockingStream), CommandError> {
    let open = || {
        let (ours, theirs) = BlockingStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((UnixStream::from_std(ours)?, theirs))
    };
    open().map_err(|source| CommandError::local(what, source))
}
