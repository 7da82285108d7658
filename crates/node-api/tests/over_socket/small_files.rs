//! The files of the small node.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::Bytes;
use dayfly_node_api::{
    ChangeMode, Changes, FileBytes, FileChanges, FileRead, FileWrite, GuestPath, ListChanges,
    ListDirectory, MakeDirectory, MoveFile, NodeError, NodeFiles, RemoveFile, WatchFiles,
};
use dayfly_types::SandboxId;
use dayfly_types::file::{
    ChangeKind, ChangedPath, DirectoryPage, FileMode, FileStat, OpenedFile, WatchEvent, WatchKind,
};
use futures::StreamExt;

use crate::small_node::{SmallNode, full};

/// Answers with what it was asked, as the text of an error.
fn echo<T: std::fmt::Debug>(request: &T) -> Result<(), NodeError> {
    Err(NodeError::not_found(format!("{request:?}")))
}

pub(crate) fn change(number: usize) -> WatchEvent {
    WatchEvent {
        kind: if number == 0 {
            WatchKind::Overflow
        } else {
            WatchKind::Moved
        },
        path: format!("/é\n{number}"),
        is_dir: number.is_multiple_of(2),
        from: (number > 1).then(|| "/before".to_owned()),
    }
}

#[async_trait]
impl NodeFiles for SmallNode {
    async fn read_file(
        &self,
        _: &SandboxId,
        request: FileRead,
    ) -> Result<(OpenedFile, FileBytes), NodeError> {
        let info = OpenedFile {
            size: 9,
            mode: FileMode::of(0o600),
            mtime: -1,
        };
        let mut pieces = vec![
            Ok(Bytes::from_static(b"four")),
            Ok(Bytes::from_static(b"fives")),
        ];
        if request.path == "/broken" {
            pieces[1] = Err(full());
        }
        Ok((info, futures::stream::iter(pieces).boxed()))
    }

    async fn write_file(
        &self,
        _: &SandboxId,
        request: FileWrite,
        mut content: FileBytes,
    ) -> Result<u64, NodeError> {
        if request.path == "/refused" {
            return Err(full());
        }
        while let Some(piece) = content.next().await {
            self.written
                .fetch_add(piece?.len() as u64, Ordering::SeqCst);
        }
        Ok(self.written.load(Ordering::SeqCst))
    }

    async fn list_directory(
        &self,
        _: &SandboxId,
        request: ListDirectory,
    ) -> Result<DirectoryPage, NodeError> {
        assert_eq!((request.limit, request.depth), (7, 3));
        assert_eq!(request.after.as_deref(), Some("a/b"));
        Ok(DirectoryPage {
            entries: Vec::new(),
            has_more: true,
        })
    }

    async fn stat(&self, _: &SandboxId, request: GuestPath) -> Result<FileStat, NodeError> {
        Err(NodeError::not_found(format!("no {}", request.path)))
    }

    async fn make_directory(&self, _: &SandboxId, request: MakeDirectory) -> Result<(), NodeError> {
        echo(&request)
    }

    async fn move_file(&self, _: &SandboxId, request: MoveFile) -> Result<(), NodeError> {
        echo(&request)
    }

    async fn change_mode(&self, _: &SandboxId, request: ChangeMode) -> Result<(), NodeError> {
        echo(&request)
    }

    async fn remove_file(&self, _: &SandboxId, request: RemoveFile) -> Result<(), NodeError> {
        if request.recursive {
            Ok(())
        } else {
            echo(&request)
        }
    }

    async fn watch_files(
        &self,
        _: &SandboxId,
        request: WatchFiles,
    ) -> Result<FileChanges, NodeError> {
        let mut changes: Vec<_> = (0..5).map(|number| Ok(change(number))).collect();
        if request.recursive {
            changes.push(Err(full()));
        }
        Ok(futures::stream::iter(changes).boxed())
    }

    async fn pack_tree(&self, _: &SandboxId, _: GuestPath) -> Result<FileBytes, NodeError> {
        let piece = Bytes::from(vec![7; 100_000]);
        Ok(futures::stream::iter([Ok(piece.clone()), Ok(piece)]).boxed())
    }

    async fn unpack_tree(
        &self,
        id: &SandboxId,
        request: GuestPath,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        let request = FileWrite {
            path: request.path,
            user: request.user,
            mode: None,
            place: Default::default(),
        };
        self.write_file(id, request, content).await
    }

    async fn list_changes(
        &self,
        _: &SandboxId,
        request: ListChanges,
    ) -> Result<Changes, NodeError> {
        let entry = ChangedPath {
            path: format!("{:?}", request.since),
            kind: ChangeKind::Removed,
            is_dir: true,
            size: 1,
            mtime: -1,
        };
        Ok(Changes {
            entries: vec![entry],
            truncated: true,
        })
    }
}
