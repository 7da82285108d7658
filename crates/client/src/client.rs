//! The client and the one path that every request takes.

use std::net::IpAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dayfly_types::{ProjectId, SandboxId, SnapshotId, TemplateName, VolumeName};
use reqwest::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::config::{self, ClientConfig, InvalidConfig};
use crate::error::{ApiError, ClientError};
use crate::in_process::Carrier;
use crate::limits;
use crate::observe::{Observer, RequestSeen};
use crate::{platform, retry};

/// A client of one server. Cheap to clone; clones share their connections.
///
/// # Cancel safety
/// Dropping a call's future closes its connection. A read is then over; anything else may or may
/// not have been carried out.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) http: reqwest::Client,
    pub(crate) base: Url,
    pub(crate) authorization: Option<HeaderValue>,
    /// Absent: requests go over connections.
    pub(crate) carrier: Option<Carrier>,
    /// Whom a service of this process hears as the one who asks.
    pub(crate) on_behalf_of: Option<IpAddr>,
    pub(crate) observer: Option<Observer>,
}

impl Client {
    /// Makes a client. Nothing is sent.
    ///
    /// A program that has installed a provider of cryptography for rustls keeps it; otherwise ring
    /// becomes that of the process.
    ///
    /// # Errors
    /// [`InvalidConfig`] when the address or the key cannot be used.
    pub fn new(config: ClientConfig) -> Result<Self, InvalidConfig> {
        let base = config::parse_url(&config.url)?;
        let authorization = config
            .key
            .as_ref()
            .map(config::ApiKey::header)
            .transpose()?;
        let http = connector(&base)?;
        Ok(Self {
            http,
            base,
            authorization,
            carrier: None,
            on_behalf_of: None,
            observer: None,
        })
    }

    /// Tells `tell` of every request from now on, when its response begins or it has failed.
    #[must_use]
    pub fn observed(mut self, tell: impl Fn(&RequestSeen) + Send + Sync + 'static) -> Self {
        self.observer = Some(Observer::new(tell));
        self
    }

    /// The address of the server.
    #[must_use]
    pub fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The address of a path, given as its segments. Each is escaped.
    pub(crate) fn address(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        // An http address always has a path, which `parse_url` saw to.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// The address of something in a sandbox.
    pub(crate) fn sandbox_address(&self, id: &str, rest: &[&str]) -> Result<Url, ClientError> {
        // Also keeps `..` out of the path, where it would name another object.
        let id = SandboxId::parse(id).map_err(|source| ClientError::InvalidName { source })?;
        let mut segments = vec!["v1", "sandboxes", id.as_str()];
        segments.extend(rest);
        Ok(self.address(&segments))
    }

    pub(crate) fn template_address(&self, name: &str) -> Result<Url, ClientError> {
        let name =
            TemplateName::parse(name).map_err(|source| ClientError::InvalidName { source })?;
        Ok(self.address(&["v1", "templates", name.as_str()]))
    }

    pub(crate) fn snapshot_address(&self, id: &str) -> Result<Url, ClientError> {
        let id = SnapshotId::parse(id).map_err(|source| ClientError::InvalidName { source })?;
        Ok(self.address(&["v1", "snapshots", id.as_str()]))
    }

    /// The address of a project, or of something in it.
    pub(crate) fn project_address(&self, id: &str, rest: &[&str]) -> Result<Url, ClientError> {
        let id = ProjectId::parse(id).map_err(|source| ClientError::InvalidName { source })?;
        let mut segments = vec!["v1", "projects", id.as_str()];
        segments.extend(rest);
        Ok(self.address(&segments))
    }

    pub(crate) fn volume_address(&self, name: &str) -> Result<Url, ClientError> {
        let name = VolumeName::parse(name).map_err(|source| ClientError::InvalidName { source })?;
        Ok(self.address(&["v1", "volumes", name.as_str()]))
    }

    /// Deletes what is at an address. Repeated when the connection fails.
    pub(crate) async fn delete(&self, url: Url) -> Result<(), ClientError> {
        retry::repeat(|| self.call(self.http.delete(url.clone()), limits::CALL_DEADLINE)).await?;
        Ok(())
    }

    /// Reads a JSON object. Repeated when the connection fails.
    pub(crate) async fn get_json<T: DeserializeOwned>(&self, url: Url) -> Result<T, ClientError> {
        let answer =
            retry::repeat(|| self.call(self.http.get(url.clone()), limits::CALL_DEADLINE)).await?;
        decode(&answer)
    }

    /// Sends a request and reads its whole answer within `limit`.
    pub(crate) async fn call(
        &self,
        request: RequestBuilder,
        limit: Duration,
    ) -> Result<Bytes, ClientError> {
        let exchange = async {
            let response = self.send(request).await?;
            self.read_whole(response).await
        };
        timeout(limit, exchange)
            .await
            .map_err(|_| ClientError::Timeout { limit })?
    }

    /// Sends a request and waits for a successful head within `limit`. The body is the caller's.
    pub(crate) async fn open(
        &self,
        request: RequestBuilder,
        limit: Duration,
    ) -> Result<Response, ClientError> {
        timeout(limit, self.send(request))
            .await
            .map_err(|_| ClientError::Timeout { limit })?
    }

    /// Sends a request; anything but a success is an error. Has no deadline of its own.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let request = match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value.clone()),
            None => request,
        };
        let failed = |error| ClientError::from_http(&error, self.url());
        let (http, request) = request.build_split();
        let request = request.map_err(failed)?;
        let mut watched = self.observer.as_ref().map(|it| it.begin(&request));
        let response = match &self.carrier {
            None => http.execute(request).await.map_err(failed)?,
            Some(carrier) => {
                let carried = carrier.carry(request, self.on_behalf_of).await;
                carried.map_err(|source| ClientError::Lost { source })?
            }
        };
        if let Some(watched) = &mut watched {
            watched.answered(&response);
        }
        drop(watched);
        let status = response.status();
        if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response);
        }
        if status.is_redirection() {
            let what = format!("it redirects (HTTP status {})", status.as_u16());
            return Err(ClientError::Protocol { what });
        }
        let retry_after = response.headers().get(RETRY_AFTER).and_then(parse_seconds);
        // The status is known; a body that cannot be read does not change it.
        let body = self.read_whole(response).await.unwrap_or_default();
        Err(ClientError::Api(Box::new(ApiError::from_answer(
            status.as_u16(),
            retry_after,
            &body,
        ))))
    }

    async fn read_whole(&self, response: Response) -> Result<Bytes, ClientError> {
        let read = read_body(response, limits::ANSWER_BYTES_MAX).await;
        read.map_err(|error| match error {
            BodyError::Http(error) => ClientError::from_http(&error, self.url()),
            BodyError::TooLong => ClientError::Protocol {
                what: format!("it is longer than {} bytes", limits::ANSWER_BYTES_MAX),
            },
        })
    }
}

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum BodyError {
    Http(reqwest::Error),
    TooLong,
}

/// Reads a body of at most so many bytes.
pub(crate) async fn read_body(
    mut response: Response,
    bytes_max: usize,
) -> Result<Bytes, BodyError> {
    let mut whole = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(BodyError::Http)? {
        if whole.len() + piece.len() > bytes_max {
            return Err(BodyError::TooLong);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// What requests to this address go through.
pub(crate) fn connector(base: &Url) -> Result<reqwest::Client, InvalidConfig> {
    // Refused when the program has chosen one, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("dayfly-client/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(limits::CONNECT_DEADLINE)
        .tcp_nodelay(true)
        .tcp_keepalive(limits::KEEP_ALIVE_AFTER)
        // The key must not follow a redirect to another host.
        .redirect(reqwest::redirect::Policy::none());
    builder = platform::give_up_on_silence(builder);
    if config::is_loopback(base) {
        builder = builder.no_proxy();
    }
    if base.scheme() == "http" {
        // A host without certificates is no reason not to speak to a server that shows none.
        builder = builder.tls_certs_only([]);
    }
    #[cfg(target_feature = "crt-static")]
    {
        builder = builder.dns_resolver(crate::names::Names::of_host());
    }
    builder
        .build()
        .map_err(|source| InvalidConfig::Http { source })
}

/// Reads JSON that the server sent.
pub(crate) fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|error| ClientError::Protocol {
        what: error.to_string(),
    })
}

/// `Retry-After` as seconds. The date form is not one that the server sends.
fn parse_seconds(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?;
    let seconds = text.trim().parse::<f64>().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(url: &str) -> Client {
        Client::new(ClientConfig {
            url: url.to_owned(),
            key: None,
        })
        .unwrap()
    }

    #[test]
    fn paths_are_escaped_and_prefixes_kept() {
        let client = client("http://a/prefix/");
        assert_eq!(
            client.address(&["v1", "a b/c"]).as_str(),
            "http://a/prefix/v1/a%20b%2Fc"
        );
        assert_eq!(client.url(), "http://a/prefix");
    }

    #[test]
    fn a_hostile_id_is_refused_before_anything_is_sent() {
        let client = client("http://a");
        for id in ["", "..", ".", "a/b", "A"] {
            assert!(
                client.sandbox_address(id, &[]).is_err(),
                "{id:?} was accepted"
            );
        }
        assert!(client.template_address("..").is_err());
        assert!(client.snapshot_address("..").is_err());
        assert!(client.volume_address("..").is_err());
    }

    #[test]
    fn the_key_is_in_no_debug_text() {
        let key = Some(config::ApiKey::parse("df_secret").unwrap());
        let client = Client::new(ClientConfig {
            url: "http://a".to_owned(),
            key,
        })
        .unwrap();
        assert!(!format!("{client:?}").contains("secret"));
    }
}
