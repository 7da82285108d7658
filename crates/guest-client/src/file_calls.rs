//! What can be asked about a guest's files.

use std::cmp::Ordering;

use dayfly_guest_proto::{Request, Response};
use dayfly_types::file::{DirectoryPage, FileStat};
use dayfly_types::limits::DIRECTORY_ENTRIES_MAX;

use crate::channel::Purpose;
use crate::client::{AgentClient, forget_refused};
use crate::error::CallError;
use crate::file::{GuestFileReader, GuestFileWriter, GuestStream, ReadRange, WriteSpec};
use crate::file_lines::{ChangeLines, GuestLines, WatchLines};

/// What names in a listing may have together; the rest is for another page.
const LISTING_BYTES_MAX: usize = 8 << 20;

/// Which part of a directory to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListSpec {
    pub user: Option<String>,
    /// Only what comes behind this relative name.
    pub after: Option<String>,
    pub limit: usize,
    /// 1 is the directory alone.
    pub depth: u32,
}

impl Default for ListSpec {
    fn default() -> Self {
        Self {
            user: None,
            after: None,
            limit: DIRECTORY_ENTRIES_MAX,
            depth: 1,
        }
    }
}

impl AgentClient {
    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot open it.
    pub async fn read_file(
        &self,
        path: &str,
        user: Option<&str>,
        range: ReadRange,
    ) -> Result<GuestFileReader, CallError> {
        let channel = self.conversation().open_channel(Purpose::Read)?;
        let request = Request::OpenRead {
            channel: channel.id,
            path: path.to_owned(),
            user: user.map(str::to_owned),
            offset: range.offset,
            limit: range.limit,
        };
        match self.call(request).await {
            Ok(Response::FileOpened(file)) => Ok(GuestFileReader::new(
                file,
                GuestStream::new(self.clone(), channel),
            )),
            Ok(_) => Err(CallError::UnexpectedAnswer),
            Err(error) => Err(forget_refused(&channel, error)),
        }
    }

    /// Opens a file for writing. It takes its place when [`GuestFileWriter::finish`] succeeds; one that
    /// is written in place changes at once.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot make it.
    pub async fn write_file(
        &self,
        path: &str,
        options: WriteSpec,
    ) -> Result<GuestFileWriter, CallError> {
        let path = path.to_owned();
        self.open_to_guest(|channel| Request::OpenWrite {
            channel,
            path,
            user: options.user,
            mode: options.mode,
            make_parents: options.make_parents,
            append: options.append,
            offset: options.offset,
        })
        .await
    }

    /// Takes a tar archive and unpacks it below a directory as it comes.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot make the directory.
    pub async fn unpack_tree(
        &self,
        path: &str,
        user: Option<&str>,
    ) -> Result<GuestFileWriter, CallError> {
        let (path, user) = (path.to_owned(), user.map(str::to_owned));
        self.open_to_guest(|channel| Request::UnpackTree {
            channel,
            path,
            user,
        })
        .await
    }

    /// Gives a directory, or one file, as a tar archive.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot open it.
    pub async fn pack_tree(
        &self,
        path: &str,
        user: Option<&str>,
    ) -> Result<GuestStream, CallError> {
        let (path, user) = (path.to_owned(), user.map(str::to_owned));
        self.open_from_guest(|channel| Request::PackTree {
            channel,
            path,
            user,
        })
        .await
    }

    /// Reports changes of a directory until it is dropped. The first line says that the watch
    /// stands.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot watch it.
    pub async fn watch_directory(
        &self,
        path: &str,
        user: Option<&str>,
        recursive: bool,
    ) -> Result<WatchLines, CallError> {
        let (path, user) = (path.to_owned(), user.map(str::to_owned));
        let stream = self.open_from_guest(|channel| Request::WatchDirectory {
            channel,
            path,
            user,
            recursive,
        });
        Ok(GuestLines::new(stream.await?))
    }

    /// Lists what changed below a directory since a moment of the guest's clock; since it became
    /// this sandbox when there is none.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot say.
    pub async fn list_changes(
        &self,
        path: &str,
        since_unix_nanos: Option<u64>,
    ) -> Result<ChangeLines, CallError> {
        let path = path.to_owned();
        let stream = self.open_from_guest(|channel| Request::ListChanges {
            channel,
            path,
            since_unix_nanos,
        });
        Ok(GuestLines::new(stream.await?))
    }

    async fn open_from_guest(
        &self,
        request: impl FnOnce(dayfly_guest_proto::ChannelId) -> Request,
    ) -> Result<GuestStream, CallError> {
        let channel = self.conversation().open_channel(Purpose::Read)?;
        match self.call_done(request(channel.id)).await {
            Ok(()) => Ok(GuestStream::new(self.clone(), channel)),
            Err(error) => Err(forget_refused(&channel, error)),
        }
    }

    async fn open_to_guest(
        &self,
        request: impl FnOnce(dayfly_guest_proto::ChannelId) -> Request,
    ) -> Result<GuestFileWriter, CallError> {
        let channel = self.conversation().open_channel(Purpose::Write)?;
        match self.call_done(request(channel.id)).await {
            Ok(()) => Ok(GuestFileWriter::new(self.clone(), channel)),
            Err(error) => Err(forget_refused(&channel, error)),
        }
    }

    /// Describes one file without following a link.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot look at it.
    pub async fn stat(&self, path: &str, user: Option<&str>) -> Result<FileStat, CallError> {
        let request = Request::Stat {
            path: path.to_owned(),
            user: user.map(str::to_owned),
        };
        let Response::Entry(entry) = self.call(request).await? else {
            return Err(CallError::UnexpectedAnswer);
        };
        Ok(entry)
    }

    /// Lists a directory, at most as many entries as asked for.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot read it.
    pub async fn list_directory(
        &self,
        path: &str,
        options: &ListSpec,
    ) -> Result<DirectoryPage, CallError> {
        let limit = options.limit.clamp(1, DIRECTORY_ENTRIES_MAX);
        let mut entries: Vec<FileStat> = Vec::new();
        let mut bytes = 0;
        loop {
            let wanted = limit - entries.len();
            let last = entries.last().map(|entry| entry.name.clone());
            let request = Request::ListDirectory {
                path: path.to_owned(),
                user: options.user.clone(),
                after: last.or_else(|| options.after.clone()),
                limit: u32::try_from(wanted).unwrap_or(u32::MAX),
                depth: options.depth,
            };
            let Response::Directory(page) = self.call(request).await? else {
                return Err(CallError::UnexpectedAnswer);
            };
            // Names must go up, or a lying guest could keep us here.
            let names = entries
                .last()
                .into_iter()
                .chain(&page.entries)
                .map(|entry| entry.name.as_str());
            if !names.is_sorted_by(|a, b| listing_order(a, b).is_lt())
                || page.entries.len() > wanted
            {
                return Err(CallError::UnexpectedAnswer);
            }
            let is_last = page.entries.is_empty() || !page.has_more;
            bytes += page.entries.iter().map(text_bytes).sum::<usize>();
            entries.extend(page.entries);
            if is_last || entries.len() >= limit || bytes >= LISTING_BYTES_MAX {
                return Ok(DirectoryPage {
                    entries,
                    has_more: page.has_more,
                });
            }
        }
    }

    /// Makes a directory; with `make_parents` also those above it, and an existing one is fine.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot make it.
    pub async fn make_directory(&self, path: &str, options: WriteSpec) -> Result<(), CallError> {
        self.call_done(Request::MakeDirectory {
            path: path.to_owned(),
            user: options.user,
            mode: options.mode,
            make_parents: options.make_parents,
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

    /// Gives a file or a directory another path; with `replace` in the place of another.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot move it; it is then where it was.
    pub async fn move_entry(
        &self,
        from: &str,
        to: &str,
        user: Option<&str>,
        replace: bool,
    ) -> Result<(), CallError> {
        self.call_done(Request::Move {
            from: from.to_owned(),
            to: to.to_owned(),
            user: user.map(str::to_owned),
            replace,
        })
        .await
    }

    /// Changes permission bits. A link is refused.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the guest cannot change them.
    pub async fn change_mode(
        &self,
        path: &str,
        mode: u32,
        user: Option<&str>,
    ) -> Result<(), CallError> {
        let (path, user) = (path.to_owned(), user.map(str::to_owned));
        self.call_done(Request::ChangeMode { path, mode, user })
            .await
    }
}

/// The order of relative names in a listing: a directory stands right before what is in it.
fn listing_order(one: &str, other: &str) -> Ordering {
    one.split('/').cmp(other.split('/'))
}

fn text_bytes(entry: &FileStat) -> usize {
    entry.name.len() + entry.path.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_right_before_what_is_in_it() {
        let names = ["a", "a/b", "a/b/c", "a/c", "a-b", "a.b", "b"];
        assert!(names.is_sorted_by(|a, b| listing_order(a, b).is_lt()));
    }
}
