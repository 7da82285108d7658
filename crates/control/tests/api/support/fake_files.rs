//! The files of the fake node. Names that end in a word behave as the word says.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use dayfly_node_api::{
    Changes, ChangesSince, EnsureDirectory, FileBytes, FileChanges, FileRead, FileWrite, GuestPath,
    ListChanges, ListDirectory, MoveEntry, NodeError, NodeFiles, RemoveFile, SetMode, WatchFiles,
    WritePlace,
};
use dayfly_types::file::{
    ChangeKind, ChangedPath, DirectoryPage, FileMode, FileStat, OpenedFile, WatchEvent, WatchKind,
};
use dayfly_types::{ErrorCode, SandboxId};
use futures::StreamExt;

use super::fake_node::FakeNode;

fn no_such_file() -> NodeError {
    NodeError::not_found("there is no such file")
}

fn entry(name: &str, path: &str, bytes: &[u8]) -> FileStat {
    FileStat {
        name: name.to_owned(),
        path: path.to_owned(),
        is_dir: false,
        is_symlink: false,
        size: bytes.len() as u64,
        mode: FileMode::of(0o100_644),
        mtime: 1_700_000_000,
        uid: 1000,
        gid: 1000,
    }
}

impl FakeNode {
    fn file(&self, id: &SandboxId, path: &str) -> Result<Vec<u8>, NodeError> {
        self.known(id)?;
        let found = self.with(|inner| inner.files.get(&(id.clone(), path.to_owned())).cloned());
        found.ok_or_else(no_such_file)
    }

    /// What was asked about files last, in the node's words.
    pub(crate) fn last_file_request(&self) -> String {
        self.with(|inner| inner.file_requests.last().cloned().unwrap_or_default())
    }

    /// Puts a file behind everybody's back.
    pub(crate) fn put_file(&self, id: &str, path: &str, bytes: Vec<u8>) {
        let id = SandboxId::parse(id).unwrap();
        self.with(|inner| inner.files.insert((id, path.to_owned()), bytes));
    }

    fn note(&self, request: &impl std::fmt::Debug) {
        let text = format!("{request:?}");
        self.with(|inner| inner.file_requests.push(text));
    }

    fn count(&self, piece: &Bytes) {
        self.counters
            .bytes_out
            .fetch_add(piece.len() as u64, Ordering::SeqCst);
    }
}

impl NodeFiles for FakeNode {
    async fn list_directory(
        &self,
        id: &SandboxId,
        request: ListDirectory,
    ) -> Result<DirectoryPage, NodeError> {
        self.note(&request);
        self.known(id)?;
        let prefix = format!("{}/", request.path.trim_end_matches('/'));
        let after = request.after.as_deref().unwrap_or_default();
        let mut entries: Vec<FileStat> = self.with(|inner| {
            let mine = inner.files.iter().filter(|((owner, _), _)| owner == id);
            let below = mine.filter_map(|((_, file), bytes)| {
                let name = file.strip_prefix(&prefix)?;
                (name > after).then(|| entry(name, file, bytes))
            });
            below.collect()
        });
        let has_more = entries.len() > request.limit;
        entries.truncate(request.limit);
        Ok(DirectoryPage { entries, has_more })
    }

    async fn stat(&self, id: &SandboxId, request: GuestPath) -> Result<FileStat, NodeError> {
        self.note(&request);
        let bytes = self.file(id, &request.path)?;
        let name = request.path.rsplit('/').next().unwrap_or_default();
        Ok(entry(name, &request.path, &bytes))
    }

    async fn make_directory(
        &self,
        id: &SandboxId,
        request: EnsureDirectory,
    ) -> Result<(), NodeError> {
        self.note(&request);
        self.known(id)?;
        if request.path.ends_with("/there") {
            return Err(NodeError::new(ErrorCode::AlreadyExists, "it is there"));
        }
        Ok(())
    }

    async fn move_file(&self, id: &SandboxId, request: MoveEntry) -> Result<(), NodeError> {
        self.note(&request);
        let bytes = self.file(id, &request.from)?;
        if self.file(id, &request.to).is_ok() && !request.replace {
            return Err(NodeError::new(ErrorCode::AlreadyExists, "it is there"));
        }
        self.with(|inner| {
            inner.files.remove(&(id.clone(), request.from));
            inner.files.insert((id.clone(), request.to), bytes);
        });
        Ok(())
    }

    async fn change_mode(&self, id: &SandboxId, request: SetMode) -> Result<(), NodeError> {
        self.note(&request);
        self.file(id, &request.path).map(drop)
    }

    async fn remove_file(&self, id: &SandboxId, request: RemoveFile) -> Result<(), NodeError> {
        self.note(&request);
        self.file(id, &request.path)?;
        self.with(|inner| inner.files.remove(&(id.clone(), request.path)));
        Ok(())
    }

    async fn list_changes(
        &self,
        id: &SandboxId,
        request: ListChanges,
    ) -> Result<Changes, NodeError> {
        self.note(&request);
        self.known(id)?;
        if matches!(&request.since, ChangesSince::Snapshot(id) if id.as_str().ends_with("none")) {
            return Err(NodeError::not_found("no such snapshot of this sandbox"));
        }
        let changed = |path: &str, kind| ChangedPath {
            path: path.to_owned(),
            kind,
            is_dir: false,
            size: 3,
            mtime: 1_700_000_000,
        };
        Ok(Changes {
            entries: vec![
                changed("/workspace/b", ChangeKind::Modified),
                changed("/etc/motd", ChangeKind::Removed),
                changed("/workspace/a", ChangeKind::Added),
            ],
            truncated: true,
        })
    }
}

impl FakeNode {
    pub(super) async fn open_file(
        &self,
        id: &SandboxId,
        request: FileRead,
    ) -> Result<(OpenedFile, FileBytes), NodeError> {
        self.note(&request);
        let bytes = self.file(id, &request.path)?;
        let info = OpenedFile {
            size: bytes.len() as u64,
            mode: FileMode::of(0o644),
            mtime: 1_700_000_000,
        };
        let from = usize::try_from(request.offset).unwrap().min(bytes.len());
        let limit = request.limit.unwrap_or(u64::MAX);
        let rest = &bytes[from..];
        let rest = &rest[..rest.len().min(usize::try_from(limit).unwrap())];
        let counters = Arc::clone(&self.counters);
        let pieces: Vec<Bytes> = rest.chunks(64 << 10).map(Bytes::copy_from_slice).collect();
        let content = futures::stream::iter(pieces).map(move |piece| {
            counters
                .bytes_out
                .fetch_add(piece.len() as u64, Ordering::SeqCst);
            Ok(piece)
        });
        Ok((info, content.boxed()))
    }

    pub(super) async fn store_file(
        &self,
        id: &SandboxId,
        request: FileWrite,
        mut content: FileBytes,
    ) -> Result<u64, NodeError> {
        self.note(&request);
        self.known(id)?;
        if request.path.ends_with("/full") {
            let error = NodeError::new(ErrorCode::DiskFull, "the disk is full");
            return Err(error);
        }
        let mut bytes = Vec::new();
        while let Some(piece) = content.next().await {
            let piece = piece?;
            self.counters
                .bytes_in
                .fetch_add(piece.len() as u64, Ordering::SeqCst);
            bytes.extend_from_slice(&piece);
            self.with(|inner| inner.written.extend_from_slice(&piece));
            if request.path.ends_with("/slow") {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        let length = bytes.len() as u64;
        let mut old = self.file(id, &request.path).unwrap_or_default();
        let bytes = match request.place {
            WritePlace::Whole => bytes,
            WritePlace::End => [old, bytes].concat(),
            WritePlace::At(offset) => {
                let offset = usize::try_from(offset).unwrap();
                old.resize(old.len().max(offset + bytes.len()), 0);
                old[offset..offset + bytes.len()].copy_from_slice(&bytes);
                old
            }
        };
        self.with(|inner| inner.files.insert((id.clone(), request.path), bytes));
        Ok(length)
    }

    pub(super) async fn watch_path(
        &self,
        id: &SandboxId,
        request: WatchFiles,
    ) -> Result<FileChanges, NodeError> {
        self.note(&request);
        self.known(id)?;
        let change = |kind, path: &str, from: Option<&str>| WatchEvent {
            kind,
            path: path.to_owned(),
            is_dir: false,
            from: from.map(str::to_owned),
        };
        let changes = [
            change(WatchKind::Created, "/é\u{2028}", None),
            change(WatchKind::Overflow, "", None),
            change(WatchKind::Moved, "/b", Some("/a")),
        ];
        let changes = futures::stream::iter(changes.map(Ok));
        Ok(match request.path.rsplit('/').next() {
            Some("silent") => futures::stream::pending().boxed(),
            Some("lost") => {
                let error = NodeError::new(ErrorCode::GuestUnavailable, "the guest is gone");
                changes.chain(futures::stream::iter([Err(error)])).boxed()
            }
            _ => changes.boxed(),
        })
    }

    pub(super) async fn pack(
        &self,
        id: &SandboxId,
        request: GuestPath,
    ) -> Result<FileBytes, NodeError> {
        self.note(&request);
        let bytes = self.file(id, &request.path)?;
        let piece = Bytes::from(bytes);
        self.count(&piece);
        Ok(futures::stream::iter([Ok(piece)]).boxed())
    }

    pub(super) async fn unpack(
        &self,
        id: &SandboxId,
        request: GuestPath,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        let write = FileWrite {
            path: request.path.clone(),
            user: request.user.clone(),
            mode: None,
            place: WritePlace::Whole,
        };
        let bytes = self.store_file(id, write, content).await?;
        self.note(&request);
        if request.path.ends_with("/refused") {
            return Err(NodeError::new(ErrorCode::InvalidRequest, "it leads out"));
        }
        Ok(bytes)
    }
}
