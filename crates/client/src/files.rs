//! Files in a guest, streamed in both directions.

use std::io;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use dayfly_api::{DirectoryListing, FileEntry, FileWritten};
use futures::StreamExt as _;
use reqwest::header::CONTENT_LENGTH;
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

impl Client {
    /// Opens a file of a guest for reading.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when the sandbox or the file is not there.
    pub async fn read_file(&self, id: &str, path: &str) -> Result<FileContent, ClientError> {
        let url = self.file_address(id, &["fs"], path)?;
        let response =
            retry::repeat(|| self.open(self.http.get(url.clone()), limits::CALL_DEADLINE)).await?;
        Ok(FileContent {
            response,
            url: self.url().to_owned(),
        })
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
        let url = self.file_address(id, &["fs"], path)?;
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

    /// Lists a directory of a guest.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when the sandbox or the directory is not there.
    pub async fn list_directory(
        &self,
        id: &str,
        path: &str,
    ) -> Result<DirectoryListing, ClientError> {
        self.get_json(self.file_address(id, &["fs", "dir"], path)?)
            .await
    }

    /// What a path of a guest is, as `lstat` says.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when the sandbox or the path is not there.
    pub async fn stat(&self, id: &str, path: &str) -> Result<FileEntry, ClientError> {
        self.get_json(self.file_address(id, &["fs", "stat"], path)?)
            .await
    }

    fn file_address(&self, id: &str, rest: &[&str], path: &str) -> Result<Url, ClientError> {
        let mut url = self.sandbox_address(id, rest)?;
        url.query_pairs_mut().append_pair("path", path);
        Ok(url)
    }
}
