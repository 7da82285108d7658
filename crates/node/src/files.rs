//! Files of a guest. The node lends the conversation and translates; the guest does the work.

use dayfly_guest_client::{AgentClient, GuestFileWriter as GuestWrite, ListSpec, ReadRange};
use dayfly_guest_client::{CallError, StreamError, WatchLines, WriteSpec};
use dayfly_guest_proto::GuestErrorCode;
use dayfly_node_api::{
    Changes, ChangesSince, EnsureDirectory, FileBytes, FileChanges, FileRead, FileWrite, GuestPath,
    ListChanges, ListDirectory, MoveEntry, NodeError, NodeFiles, RemoveFile, SetMode, WatchFiles,
    WritePlace,
};
use dayfly_types::file::{ChangeKind, DirectoryPage, FileStat, OpenedFile, WatchKind};
use dayfly_types::{ErrorCode, SandboxId, SnapshotId, limits};
use futures::StreamExt;

use crate::calls::{call_failed, stream_failed};
use crate::node::Node;
use crate::sandbox::OpenCall;

/// What paths in a list of changes may have together; the rest is cut off with a mark.
const CHANGES_BYTES_MAX: usize = 8 << 20;
const MOVE_REFUSED: &str = "it cannot be moved there: the two places are on two disks, one of them \
    is in the other, or a directory of the template would have to move";
const ARCHIVE_REFUSED: &str = "the guest refused the archive: it is no tar archive, is cut off, or \
    has a member that leads out, is no file, directory or link, or stands in the way of another";

impl Node {
    /// The moment of a snapshot on the guest's clock, which follows the node's. `None`: as long
    /// as the sandbox exists.
    fn moment_of(&self, id: &SandboxId, snapshot: &SnapshotId) -> Result<Option<u64>, NodeError> {
        let report = self.find(id)?.report();
        if report.from_snapshot.as_ref() == Some(snapshot) {
            return Ok(None);
        }
        let capture = self.parts.captures.get(snapshot);
        let capture = capture.filter(|capture| capture.is_snapshot() && capture.sandbox == *id);
        let capture = capture
            .ok_or_else(|| NodeError::not_found(format!("no snapshot {snapshot} of {id}")))?;
        Ok(Some(capture.frozen_unix_nanos()))
    }
}

impl NodeFiles for Node {
    async fn list_directory(
        &self,
        id: &SandboxId,
        request: ListDirectory,
    ) -> Result<DirectoryPage, NodeError> {
        let (agent, _call) = self.agent(id).await?;
        let options = ListSpec {
            user: request.user,
            after: request.after,
            limit: request.limit,
            depth: request.depth,
        };
        let page = agent.list_directory(&request.path, &options).await;
        page.map_err(file_refused)
    }

    async fn stat(&self, id: &SandboxId, request: GuestPath) -> Result<FileStat, NodeError> {
        let (agent, _call) = self.agent(id).await?;
        let found = agent.stat(&request.path, request.user.as_deref()).await;
        found.map_err(file_refused)
    }

    async fn make_directory(
        &self,
        id: &SandboxId,
        request: EnsureDirectory,
    ) -> Result<(), NodeError> {
        let (agent, _call) = self.agent(id).await?;
        let options = WriteSpec {
            user: request.user,
            mode: request.mode,
            make_parents: request.parents,
            ..WriteSpec::default()
        };
        let made = agent.make_directory(&request.path, options).await;
        made.map_err(file_refused)
    }

    async fn move_file(&self, id: &SandboxId, request: MoveEntry) -> Result<(), NodeError> {
        let (agent, _call) = self.agent(id).await?;
        let user = request.user.as_deref();
        let moved = agent
            .move_entry(&request.from, &request.to, user, request.replace)
            .await;
        moved.map_err(|error| with_message(file_refused(error), MOVE_REFUSED))
    }

    async fn change_mode(&self, id: &SandboxId, request: SetMode) -> Result<(), NodeError> {
        let (agent, _call) = self.agent(id).await?;
        let user = request.user.as_deref();
        let changed = agent.change_mode(&request.path, request.mode, user).await;
        changed.map_err(file_refused)
    }

    async fn remove_file(&self, id: &SandboxId, request: RemoveFile) -> Result<(), NodeError> {
        let (agent, _call) = self.agent(id).await?;
        let user = request.user.as_deref();
        let removed = agent.remove(&request.path, user, request.recursive).await;
        removed.map_err(file_refused)
    }

    async fn list_changes(
        &self,
        id: &SandboxId,
        request: ListChanges,
    ) -> Result<Changes, NodeError> {
        let since = match &request.since {
            ChangesSince::Create => None,
            ChangesSince::Snapshot(snapshot) => self.moment_of(id, snapshot)?,
            ChangesSince::UnixNanos(moment) => Some(*moment),
        };
        let (agent, _call) = self.agent(id).await?;
        let mut lines = agent
            .list_changes(&request.path, since)
            .await
            .map_err(file_refused)?;
        let limit = request.limit.min(limits::DIRECTORY_ENTRIES_MAX);
        let mut entries = Vec::new();
        let mut bytes = 0;
        while let Some(change) = lines.next().await.map_err(stream_failed)? {
            if entries.len() >= limit || bytes >= CHANGES_BYTES_MAX {
                return Ok(Changes {
                    entries,
                    truncated: true,
                });
            }
            bytes += change.path.len();
            if change.kind != ChangeKind::Unknown {
                entries.push(change);
            }
        }
        Ok(Changes {
            entries,
            truncated: false,
        })
    }
}

/// Opens a file for reading.
pub(crate) async fn read(
    agent: &AgentClient,
    request: FileRead,
    call: OpenCall,
) -> Result<(OpenedFile, FileBytes), NodeError> {
    let range = ReadRange {
        offset: request.offset,
        limit: request.limit,
    };
    let file = agent
        .read_file(&request.path, request.user.as_deref(), range)
        .await
        .map_err(file_refused)?;
    let info = file.info().clone();
    Ok((info, content(file.into_stream(), call)))
}

/// Replaces or makes a file, or writes into it in place.
pub(crate) async fn write(
    agent: &AgentClient,
    request: FileWrite,
    content: FileBytes,
) -> Result<u64, NodeError> {
    let options = WriteSpec {
        user: request.user,
        mode: request.mode,
        make_parents: true,
        append: request.place == WritePlace::End,
        offset: match request.place {
            WritePlace::At(offset) => Some(offset),
            WritePlace::Whole | WritePlace::End => None,
        },
    };
    let file = agent.write_file(&request.path, options).await;
    copy_into_guest(file.map_err(file_refused)?, content).await
}

/// Reports changes from the answer on.
pub(crate) async fn watch(
    agent: &AgentClient,
    request: WatchFiles,
    call: OpenCall,
) -> Result<FileChanges, NodeError> {
    let user = request.user.as_deref();
    let mut lines = agent
        .watch_directory(&request.path, user, request.recursive)
        .await
        .map_err(file_refused)?;
    // The first line says that the watch stands, which is what the answer to this call says.
    match lines.next().await.map_err(stream_failed)? {
        Some(event) if event.kind == WatchKind::Ready => Ok(changes(lines, call)),
        Some(_) | None => Err(stream_failed(StreamError::Malformed)),
    }
}

/// A directory, or one file, as a tar archive.
pub(crate) async fn pack(
    agent: &AgentClient,
    request: GuestPath,
    call: OpenCall,
) -> Result<FileBytes, NodeError> {
    let stream = agent
        .pack_tree(&request.path, request.user.as_deref())
        .await
        .map_err(file_refused)?;
    Ok(content(stream.into_stream(), call))
}

/// Unpacks a tar archive below a directory.
pub(crate) async fn unpack(
    agent: &AgentClient,
    request: GuestPath,
    content: FileBytes,
) -> Result<u64, NodeError> {
    let target = agent
        .unpack_tree(&request.path, request.user.as_deref())
        .await;
    let unpacked = copy_into_guest(target.map_err(file_refused)?, content).await;
    unpacked.map_err(|error| with_message(error, ARCHIVE_REFUSED))
}

/// Bytes of a guest, which keep its sandbox awake.
fn content(
    stream: impl futures::Stream<Item = Result<bytes::Bytes, StreamError>> + Send + 'static,
    call: OpenCall,
) -> FileBytes {
    let bytes = stream.map(move |part| {
        let _open = &call;
        part.map_err(stream_failed)
    });
    bytes.boxed()
}

async fn copy_into_guest(mut file: GuestWrite, mut content: FileBytes) -> Result<u64, NodeError> {
    while let Some(part) = content.next().await {
        // Returning drops the file, which discards it in the guest.
        file.write(part?).await.map_err(stream_failed)?;
    }
    file.finish().await.map_err(stream_failed)
}

fn changes(lines: WatchLines, call: OpenCall) -> FileChanges {
    let changes = futures::stream::unfold(Some((lines, call)), |open| async move {
        let (mut lines, call) = open?;
        loop {
            match lines.next().await {
                Ok(Some(event)) => {
                    // What a newer guest may say beyond the changes that are known here.
                    if !matches!(event.kind, WatchKind::Ready | WatchKind::Unknown) {
                        return Some((Ok(event), Some((lines, call))));
                    }
                }
                Ok(None) => return None,
                Err(error) => return Some((Err(stream_failed(error)), None)),
            }
        }
    });
    changes.boxed()
}

/// Says what it means when the guest calls a request invalid.
fn with_message(mut error: NodeError, text: &str) -> NodeError {
    if error.code == ErrorCode::InvalidRequest {
        error.message = text.to_owned();
    }
    error
}

/// As for any call, but that something is there already is a conflict of its own.
fn file_refused(error: CallError) -> NodeError {
    if let CallError::Refused(refusal) = &error
        && refusal.code == GuestErrorCode::Exists
    {
        return NodeError::new(ErrorCode::AlreadyExists, "it exists already in the guest");
    }
    call_failed(error)
}
