//! The handle of a conversation.

use std::sync::Arc;
use std::time::Duration;

use dayfly_guest_proto::{FileEntry, Request, Response};
use dayfly_types::limits::DIRECTORY_ENTRIES_MAX;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use crate::channel::Purpose;
use crate::conversation::Conversation;
use crate::error::{CallError, ConnectError, ConversationLost};
use crate::exec::{ExecSession, ExecSpec};
use crate::file::{FileInfo, FileRead, FileWrite, ReadRange, WriteOptions};
use crate::{open, ports};

/// A conversation with the agent of one guest. Clones share it.
///
/// The conversation lives as long as any clone, session or file of it. When the last is dropped
/// the sockets close, and the guest ends every exec that was started here.
#[derive(Debug, Clone)]
pub struct AgentClient {
    owner: Arc<Owner>,
}

#[derive(Debug)]
struct Owner {
    conversation: Arc<Conversation>,
    /// Dropped with the last handle, which ends them.
    _tasks: JoinSet<()>,
}

/// A directory, or the first part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryListing {
    /// In the order of names.
    pub entries: Vec<FileEntry>,
    /// There are more entries than were asked for.
    pub is_truncated: bool,
}

impl AgentClient {
    /// Opens a conversation. Bytes of former ones on the sockets are skipped.
    ///
    /// # Errors
    /// [`ConnectError`] when the guest does not answer in time or a socket breaks.
    ///
    /// # Cancel safety
    /// Dropping the future closes both sockets.
    pub async fn connect(
        control: UnixStream,
        bulk: UnixStream,
        deadline: Duration,
    ) -> Result<Self, ConnectError> {
        let opened = open::open(control, bulk, deadline).await?;
        let (conversation, tasks) = ports::start(opened);
        Ok(Self {
            owner: Arc::new(Owner {
                conversation,
                _tasks: tasks,
            }),
        })
    }

    pub(crate) fn conversation(&self) -> &Arc<Conversation> {
        &self.owner.conversation
    }

    /// Resolves when the conversation is over, with the reason. Cancel safe.
    pub async fn closed(&self) -> ConversationLost {
        self.conversation().closed().await
    }

    /// Starts a process.
    ///
    /// # Errors
    /// [`CallError`]; nothing runs then. A command that does not exist is no error: it exits with
    /// code 127.
    ///
    /// # Cancel safety
    /// Dropping the future kills what was started.
    pub async fn exec(&self, spec: ExecSpec) -> Result<ExecSession, CallError> {
        let channel = self
            .conversation()
            .open_channel(Purpose::Exec(spec.stdin))?;
        match self
            .call(Request::StartExec(spec.into_request(channel.id)))
            .await
        {
            Ok(Response::ExecStarted { pid }) => Ok(ExecSession::new(self.clone(), channel, pid)),
            Ok(_) => Err(CallError::UnexpectedAnswer),
            Err(error) => Err(forget_refused(&channel, error)),
        }
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot open it.
    pub async fn read_file(
        &self,
        path: &str,
        user: Option<&str>,
        range: ReadRange,
    ) -> Result<FileRead, CallError> {
        let channel = self.conversation().open_channel(Purpose::Read)?;
        let request = Request::OpenRead {
            channel: channel.id,
            path: path.to_owned(),
            user: user.map(str::to_owned),
            offset: range.offset,
            limit: range.limit,
        };
        match self.call(request).await {
            Ok(Response::FileOpened { size, mode, mtime }) => Ok(FileRead::new(
                self.clone(),
                channel,
                FileInfo { size, mode, mtime },
            )),
            Ok(_) => Err(CallError::UnexpectedAnswer),
            Err(error) => Err(forget_refused(&channel, error)),
        }
    }

    /// Opens a file for writing. It takes its place when [`FileWrite::finish`] succeeds.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot make it.
    pub async fn write_file(
        &self,
        path: &str,
        options: WriteOptions,
    ) -> Result<FileWrite, CallError> {
        let channel = self.conversation().open_channel(Purpose::Write)?;
        let request = Request::OpenWrite {
            channel: channel.id,
            path: path.to_owned(),
            user: options.user,
            mode: options.mode,
            make_parents: options.make_parents,
            append: options.append,
        };
        match self.call(request).await {
            Ok(Response::Done) => Ok(FileWrite::new(self.clone(), channel)),
            Ok(_) => Err(CallError::UnexpectedAnswer),
            Err(error) => Err(forget_refused(&channel, error)),
        }
    }

    /// Describes one file without following a link.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot look at it.
    pub async fn stat(&self, path: &str, user: Option<&str>) -> Result<FileEntry, CallError> {
        let request = Request::Stat {
            path: path.to_owned(),
            user: user.map(str::to_owned),
        };
        let Response::Entry(entry) = self.call(request).await? else {
            return Err(CallError::UnexpectedAnswer);
        };
        Ok(entry)
    }

    /// Lists a directory in the order of names, at most `limit` entries.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot read it.
    pub async fn list_directory(
        &self,
        path: &str,
        user: Option<&str>,
        limit: usize,
    ) -> Result<DirectoryListing, CallError> {
        let limit = limit.min(DIRECTORY_ENTRIES_MAX);
        let mut entries: Vec<FileEntry> = Vec::new();
        loop {
            let wanted = limit - entries.len();
            let request = Request::ListDirectory {
                path: path.to_owned(),
                user: user.map(str::to_owned),
                after: entries.last().map(|entry| entry.name.clone()),
                limit: u32::try_from(wanted.max(1)).unwrap_or(u32::MAX),
            };
            let Response::Directory(page) = self.call(request).await? else {
                return Err(CallError::UnexpectedAnswer);
            };
            // Names must go up, or a lying guest could keep us here.
            let names = entries
                .last()
                .into_iter()
                .chain(&page.entries)
                .map(|entry| &entry.name);
            if !names.is_sorted_by(|a, b| a < b) || page.entries.len() > wanted.max(1) {
                return Err(CallError::UnexpectedAnswer);
            }
            let is_last = page.entries.is_empty() || !page.has_more;
            entries.extend(page.entries.into_iter().take(wanted));
            if is_last || entries.len() >= limit {
                return Ok(DirectoryListing {
                    entries,
                    is_truncated: page.has_more,
                });
            }
        }
    }

    /// Makes a directory; with `make_parents` also those above it, and an existing one is fine.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot make it.
    pub async fn make_directory(&self, path: &str, options: WriteOptions) -> Result<(), CallError> {
        let WriteOptions {
            user,
            mode,
            make_parents,
            ..
        } = options;
        let path = path.to_owned();
        self.call_done(Request::MakeDirectory {
            path,
            user,
            mode,
            make_parents,
        })
        .await
    }

    /// Removes a file or an empty directory, or with `recursive` a whole tree.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot remove it. A tree may be half removed.
    pub async fn remove(
        &self,
        path: &str,
        user: Option<&str>,
        recursive: bool,
    ) -> Result<(), CallError> {
        let (path, user) = (path.to_owned(), user.map(str::to_owned));
        self.call_done(Request::Remove {
            path,
            user,
            recursive,
        })
        .await
    }

    pub(crate) async fn call(&self, request: Request) -> Result<Response, CallError> {
        self.conversation().call(request).await
    }

    pub(crate) async fn call_done(&self, request: Request) -> Result<(), CallError> {
        let is_done = self.call(request).await? == Response::Done;
        if is_done {
            Ok(())
        } else {
            Err(CallError::UnexpectedAnswer)
        }
    }
}

/// A refusal means that the guest has nothing on the channel; anything else leaves it in doubt,
/// and the channel's end cancels it.
fn forget_refused(channel: &crate::handle::ChannelHandle, error: CallError) -> CallError {
    if matches!(error, CallError::Refused(_)) {
        channel.forget();
    }
    error
}
