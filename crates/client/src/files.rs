//! Files in a guest, streamed in both directions.

use std::io;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use dayfly_api::{DirectoryListing, FileEntry, FileWritten};
use futures::StreamExt as _;
use reqwest::header::{CONTENT_LENGTH, RANGE};
use reqwest::{Body, Response, Url};
use tokio::io::AsyncRead;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::io::ReaderStream;

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::limits;
use crate::retry;

/// What a file will hold.
#[derive(Debug)]
pub struct FileBody {
    body: Body,
    length: Option<u64>,
    source: Arc<UploadSource>,
}

/// What the sending side of an upload learns about its source.
#[derive(Debug, Default)]
struct UploadSource {
    ended: Notify,
    failure: OnceLock<(io::ErrorKind, String)>,
}

impl FileBody {
    /// Sends bytes that are at hand.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let length = u64::try_from(bytes.len()).ok();
        let source = Arc::new(UploadSource::default());
        source.ended.notify_one();
        Self {
            body: Body::from(bytes),
            length,
            source,
        }
    }

    /// Sends what a reader gives, piece by piece. With a `length`, a source that gives less or
    /// more fails the upload.
    pub fn from_reader(reader: impl AsyncRead + Send + 'static, length: Option<u64>) -> Self {
        let source = Arc::new(UploadSource::default());
        let observed = Arc::clone(&source);
        let stream =
            ReaderStream::with_capacity(reader, limits::UPLOAD_PIECE_BYTES).map(move |piece| {
                piece.inspect_err(|error| {
                    // Only one failure ends a stream, so a second `set` cannot happen.
                    let _ = observed.failure.set((error.kind(), error.to_string()));
                })
            });
        let ended = Arc::clone(&source);
        let end = futures::stream::poll_fn(move |_| {
            ended.ended.notify_one();
            std::task::Poll::Ready(None)
        });
        Self {
            body: Body::wrap_stream(stream.chain(end)),
            length,
            source,
        }
    }
}

/// A file on its way here.
#[derive(Debug)]
pub struct FileContent {
    response: Response,
    url: String,
}

impl FileContent {
    /// How long the file is, when the server said so.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// [`ClientError::Lost`] when the file was cut off, [`ClientError::Timeout`] when the server
    /// fell silent.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        let limit = limits::STREAM_SILENCE_MAX;
        let piece = timeout(limit, self.response.chunk())
            .await
            .map_err(|_| ClientError::Timeout { limit })?;
        piece.map_err(|error| ClientError::from_http(&error, &self.url))
    }
}

/// Which part of a file to read, and as whom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadOptions {
    pub offset: u64,
    /// All of the rest when absent.
    pub length: Option<u64>,
    /// Whose permissions count; the server's default when absent.
    pub user: Option<String>,
}

/// How to write a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteOptions {
    /// Adds to the file in place.
    pub append: bool,
    /// Writes into the file in place, from this byte on.
    pub offset: Option<u64>,
    /// Permission bits in octal, such as `0644`.
    pub mode: Option<String>,
    pub user: Option<String>,
}

/// Which part of a directory to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListOptions {
    /// 1, or absent, is the directory alone.
    pub depth: Option<u32>,
    pub limit: Option<u32>,
    /// The `next_after` of the page before.
    pub after: Option<String>,
    pub user: Option<String>,
}

impl Client {
    /// Opens a file of a guest for reading.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when the sandbox or the file is not there.
    pub async fn read_file(&self, id: &str, path: &str) -> Result<FileContent, ClientError> {
        self.read_file_with(id, path, &ReadOptions::default()).await
    }

    /// The same for a part of it, or as another user.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `range_not_satisfiable` when the file has nothing at the offset.
    pub async fn read_file_with(
        &self,
        id: &str,
        path: &str,
        options: &ReadOptions,
    ) -> Result<FileContent, ClientError> {
        let url = self.file_address(id, &["fs"], path, options.user.as_deref())?;
        let range = match (options.offset, options.length) {
            (0, None) => return self.open_content(url).await,
            (first, None) => format!("bytes={first}-"),
            (_, Some(0)) => {
                let what = "a range of no bytes cannot be asked for".to_owned();
                return Err(ClientError::Protocol { what });
            }
            (first, Some(length)) => {
                format!("bytes={first}-{}", first.saturating_add(length - 1))
            }
        };
        let request = || self.http.get(url.clone()).header(RANGE, &range);
        let response = retry::repeat(|| self.open(request(), limits::CALL_DEADLINE)).await?;
        Ok(self.content(response))
    }

    pub(crate) async fn open_content(&self, url: Url) -> Result<FileContent, ClientError> {
        let response =
            retry::repeat(|| self.open(self.http.get(url.clone()), limits::CALL_DEADLINE)).await?;
        Ok(self.content(response))
    }

    fn content(&self, response: Response) -> FileContent {
        FileContent {
            response,
            url: self.url().to_owned(),
        }
    }

    /// Writes a file of a guest, with the directories above it.
    ///
    /// # Errors
    /// [`ClientError::Upload`] when the source failed; otherwise as any call. What the file holds
    /// after an error is not certain.
    pub async fn write_file(
        &self,
        id: &str,
        path: &str,
        content: FileBody,
    ) -> Result<FileWritten, ClientError> {
        self.write_file_with(id, path, content, &WriteOptions::default())
            .await
    }

    /// The same in place, with permissions, or as another user.
    ///
    /// # Errors
    /// As [`Client::write_file`].
    pub async fn write_file_with(
        &self,
        id: &str,
        path: &str,
        content: FileBody,
        options: &WriteOptions,
    ) -> Result<FileWritten, ClientError> {
        let mut url = self.file_address(id, &["fs"], path, options.user.as_deref())?;
        if options.append {
            url.query_pairs_mut().append_pair("append", "true");
        }
        if let Some(offset) = options.offset {
            url.query_pairs_mut()
                .append_pair("offset", &offset.to_string());
        }
        if let Some(mode) = &options.mode {
            url.query_pairs_mut().append_pair("mode", mode);
        }
        self.send_content(url, content).await
    }

    pub(crate) async fn send_content(
        &self,
        url: Url,
        content: FileBody,
    ) -> Result<FileWritten, ClientError> {
        let FileBody {
            body,
            length,
            source,
        } = content;
        let mut request = self.http.put(url).body(body);
        if let Some(length) = length {
            request = request.header(CONTENT_LENGTH, length);
        }
        // The source may be as slow as a person at a keyboard; the deadline starts at its end.
        let limit = limits::CALL_DEADLINE;
        let overdue = async {
            source.ended.notified().await;
            sleep(limit).await;
        };
        let outcome = tokio::select! {
            outcome = self.call(request, limits::UPLOAD_DEADLINE) => outcome,
            () = overdue => Err(ClientError::Timeout { limit }),
        };
        match (outcome, source.failure.get()) {
            (Ok(answer), _) => decode(&answer),
            (Err(_), Some((kind, text))) => Err(ClientError::Upload {
                source: io::Error::new(*kind, text.clone()),
            }),
            (Err(error), None) => Err(error),
        }
    }

    /// Lists a directory of a guest, as much of it as one answer holds.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when the sandbox or the directory is not there.
    pub async fn list_directory(
        &self,
        id: &str,
        path: &str,
    ) -> Result<DirectoryListing, ClientError> {
        self.list_directory_with(id, path, &ListOptions::default())
            .await
    }

    /// The same in pages, or with what is below.
    ///
    /// # Errors
    /// As [`Client::list_directory`].
    pub async fn list_directory_with(
        &self,
        id: &str,
        path: &str,
        options: &ListOptions,
    ) -> Result<DirectoryListing, ClientError> {
        let mut url = self.file_address(id, &["fs", "dir"], path, options.user.as_deref())?;
        let numbers = [("depth", options.depth), ("limit", options.limit)];
        for (name, number) in numbers {
            if let Some(number) = number {
                url.query_pairs_mut().append_pair(name, &number.to_string());
            }
        }
        if let Some(after) = &options.after {
            url.query_pairs_mut().append_pair("after", after);
        }
        self.get_json(url).await
    }

    /// What a path of a guest is, as `lstat` says.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when the sandbox or the path is not there.
    pub async fn stat(&self, id: &str, path: &str) -> Result<FileEntry, ClientError> {
        self.stat_as(id, path, None).await
    }

    /// The same as another user.
    ///
    /// # Errors
    /// As [`Client::stat`].
    pub async fn stat_as(
        &self,
        id: &str,
        path: &str,
        user: Option<&str>,
    ) -> Result<FileEntry, ClientError> {
        self.get_json(self.file_address(id, &["fs", "stat"], path, user)?)
            .await
    }

    pub(crate) fn file_address(
        &self,
        id: &str,
        rest: &[&str],
        path: &str,
        user: Option<&str>,
    ) -> Result<Url, ClientError> {
        let mut url = self.sandbox_address(id, rest)?;
        url.query_pairs_mut().append_pair("path", path);
        if let Some(user) = user {
            url.query_pairs_mut().append_pair("user", user);
        }
        Ok(url)
    }
}
