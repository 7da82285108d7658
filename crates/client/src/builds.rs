//! Builds of templates that the server runs.

use bytes::Bytes;
use dayfly_api::{BuildTemplateForm, TemplateBuild, TemplateBuildEvent};
use dayfly_types::ContextPath;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Body, Url};
use serde_json::Value;

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::event_stream::{EventStream, is_cut, open_again};
use crate::limits;

/// A file of a build context.
#[derive(Debug, Clone)]
pub struct BuildFile {
    pub path: ContextPath,
    pub content: Bytes,
}

/// The events of a build, until its last. A lost connection is made again where it was.
#[derive(Debug)]
pub struct BuildFollow {
    client: Client,
    url: Url,
    after: Option<String>,
    stream: Option<EventStream>,
    is_over: bool,
}

impl Client {
    /// Has the server build a template, and does not wait for it. Never sent twice: that would be
    /// another build.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn start_build(
        &self,
        form: &BuildTemplateForm,
        files: &[BuildFile],
    ) -> Result<TemplateBuild, ClientError> {
        let protocol = |what: String| ClientError::Protocol { what };
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| protocol(error.to_string()))?;
        let boundary = hex::encode(random);
        let texts = serde_json::to_value(form).map_err(|error| protocol(error.to_string()))?;
        let body = encode(&boundary, &texts, files);
        let call = self
            .http
            .post(self.address(&["v1", "templates", "build"]))
            .header(
                CONTENT_TYPE,
                format!("multipart/form-data; boundary={boundary}"),
            )
            .body(body);
        decode(&self.call(call, limits::UPLOAD_DEADLINE).await?)
    }

    /// The builds that the server remembers, newest first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn builds(&self) -> Result<Vec<TemplateBuild>, ClientError> {
        let url = self.address(&["v1", "templates", "builds"]);
        self.get_json(url).await
    }

    /// Reads one build.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is none.
    pub async fn build(&self, id: &str) -> Result<TemplateBuild, ClientError> {
        self.get_json(self.build_address(id, &[])).await
    }

    /// Cancels a build that runs, forgets one that has ended.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is none.
    pub async fn delete_build(&self, id: &str) -> Result<(), ClientError> {
        let call = self.http.delete(self.build_address(id, &[]));
        self.call(call, limits::CALL_DEADLINE).await.map(drop)
    }

    /// The events of a build, from the first that is kept.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is no such build.
    pub async fn build_events(&self, id: &str) -> Result<BuildFollow, ClientError> {
        let mut follow = BuildFollow {
            client: self.clone(),
            url: self.build_address(id, &["events"]),
            after: None,
            stream: None,
            is_over: false,
        };
        follow.stream = Some(follow.open().await?);
        Ok(follow)
    }

    /// Each part is escaped, so it names nothing else.
    fn build_address(&self, id: &str, rest: &[&str]) -> Url {
        let mut segments = vec!["v1", "templates", "builds", id];
        segments.extend(rest);
        self.address(&segments)
    }
}

impl BuildFollow {
    /// The next event; nothing behind the last.
    ///
    /// # Errors
    /// [`ClientError`] when the server is away for longer than a minute.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is ready.
    pub async fn next(&mut self) -> Result<Option<TemplateBuildEvent>, ClientError> {
        while !self.is_over {
            let Some(stream) = &mut self.stream else {
                self.stream = Some(open_again(async || self.open().await).await?);
                continue;
            };
            match stream.next().await {
                Ok(event) => {
                    self.after = event.id.or(self.after.take());
                    // A newer server may say more.
                    let told: Result<TemplateBuildEvent, _> = serde_json::from_str(&event.data);
                    let Ok(told) = told else {
                        continue;
                    };
                    self.is_over = matches!(
                        told,
                        TemplateBuildEvent::Built { .. } | TemplateBuildEvent::Failed { .. }
                    );
                    return Ok(Some(told));
                }
                Err(error) if is_cut(&error) => self.stream = None,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    async fn open(&self) -> Result<EventStream, ClientError> {
        let mut url = self.url.clone();
        if let Some(after) = &self.after {
            url.query_pairs_mut().append_pair("after", after);
        }
        let request = self.client.http.get(url);
        let response = self.client.open(request, limits::CALL_DEADLINE).await?;
        Ok(EventStream::new(response, self.client.url()))
    }
}

/// A form as `multipart/form-data`. The boundary is random, so it stands in no file.
fn encode(boundary: &str, texts: &Value, files: &[BuildFile]) -> Body {
    let mut pieces: Vec<Bytes> = Vec::new();
    for (name, text) in texts.as_object().into_iter().flatten() {
        let text = text.as_str().unwrap_or_default();
        let head = head(boundary, name, "");
        pieces.push(format!("{head}{text}\r\n").into());
    }
    for file in files {
        let path = file.path.as_str().replace('"', "\\\"");
        pieces.push(head(boundary, &path, "; filename=\"file\"").into());
        pieces.push(file.content.clone());
        pieces.push(Bytes::from_static(b"\r\n"));
    }
    pieces.push(format!("--{boundary}--\r\n").into());
    let pieces = pieces.into_iter().map(Ok::<_, std::convert::Infallible>);
    Body::wrap_stream(futures::stream::iter(pieces))
}

fn head(boundary: &str, name: &str, more: &str) -> String {
    format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n")
}
