//! Watches of directories, and trees as archives.

use dayfly_api::{FileChange, FileWritten};

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::event_stream::{EventStream, told};
use crate::files::{FileBody, FileContent};
use crate::limits;

/// What a watch says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchItem {
    Change(FileChange),
    /// Some changes were lost: look for yourself.
    Overflow,
}

/// Changes of a directory, as they happen. Dropping it ends the watch.
#[derive(Debug)]
pub struct FileWatch {
    events: EventStream,
    is_over: bool,
}

impl Client {
    /// Watches a directory. Everything that happens after the answer is told.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when the sandbox or the directory is not there.
    pub async fn watch_files(
        &self,
        id: &str,
        path: &str,
        recursive: bool,
        user: Option<&str>,
    ) -> Result<FileWatch, ClientError> {
        let mut url = self.file_address(id, &["fs", "watch"], path, user)?;
        if recursive {
            url.query_pairs_mut().append_pair("recursive", "true");
        }
        let response = self
            .open(self.http.get(url), limits::SOCKET_DEADLINE)
            .await?;
        Ok(FileWatch {
            events: EventStream::new(response, self.url()),
            is_over: false,
        })
    }

    /// Opens a directory of a guest, or one file, as a tar archive. The guest made it: whoever
    /// unpacks it must not trust it.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when the sandbox or the path is not there.
    pub async fn download_tree(
        &self,
        id: &str,
        path: &str,
        user: Option<&str>,
    ) -> Result<FileContent, ClientError> {
        let url = self.file_address(id, &["fs", "tar"], path, user)?;
        self.open_content(url).await
    }

    /// Unpacks a tar archive below a directory of a guest.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `invalid_request` when the archive is refused. What came before
    /// the member that was refused is unpacked.
    pub async fn upload_tree(
        &self,
        id: &str,
        path: &str,
        user: Option<&str>,
        archive: FileBody,
    ) -> Result<FileWritten, ClientError> {
        let url = self.file_address(id, &["fs", "tar"], path, user)?;
        self.send_content(url, archive).await
    }
}

impl FileWatch {
    /// The next change; `None` when the directory is gone.
    ///
    /// # Errors
    /// [`ClientError::Api`] when the guest is lost, [`ClientError::Lost`] when the stream was cut
    /// off.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is ready.
    pub async fn next(&mut self) -> Result<Option<WatchItem>, ClientError> {
        while !self.is_over {
            let event = self.events.next().await?;
            match event.name.as_str() {
                "change" => return Ok(Some(WatchItem::Change(decode(event.data.as_bytes())?))),
                "overflow" => return Ok(Some(WatchItem::Overflow)),
                "end" => self.is_over = true,
                "error" => {
                    self.is_over = true;
                    return Err(told(&event.data)?);
                }
                // A newer server may say more.
                _ => {}
            }
        }
        Ok(None)
    }
}
