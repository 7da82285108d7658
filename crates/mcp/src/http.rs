//! Many clients over HTTP, as the streamable transport of the protocol has it.
//!
//! Whoever calls this has authenticated the request and says whose it is. Clients of the newest
//! revision of the protocol have no session; those of earlier ones get one, which belongs to the key
//! that began it and ends when its client is silent for too long.

mod hosts;
mod message;
mod sessions;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use dayfly_client::Client;
use dayfly_types::ErrorCode;
use dayfly_types::limits::{MCP_MESSAGE_BYTES_MAX, MCP_MESSAGE_DEADLINE, MCP_SESSION_IDLE};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

pub use self::hosts::AllowedHosts;
use self::message::Peek;
pub use self::sessions::{CallerPlaces, HeldPlace, HttpCaller};
use self::sessions::{SessionRefusal, Sessions};
use crate::home::HomeSettings;
use crate::server::McpServer;

const SESSION: &str = "mcp-session-id";

/// How a request reached the server, put on it by whoever serves it: links are made of that, and the
/// audit record of what its tools do says who asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReachedBy {
    pub is_secure: bool,
    pub client: Option<IpAddr>,
}

impl ReachedBy {
    pub(crate) const fn scheme(self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }
}

/// Why a request was not served.
#[derive(Debug, thiserror::Error)]
pub enum HttpRefusal {
    /// A name that somebody else chose for this server, as a page that rebinds DNS does.
    #[error("the server is not known under the host of this request")]
    ForeignHost,
    #[error("requests of pages of another origin are refused")]
    ForeignOrigin,
    #[error("there is no such session")]
    NoSuchSession,
    #[error("the project or the server has as many sessions as it may")]
    TooManySessions,
    #[error("a request with this id goes on in the session already")]
    IdUnderWay,
    #[error("the message is longer than {MCP_MESSAGE_BYTES_MAX} bytes")]
    TooLong,
    #[error("the project or the server has as many long messages as it may; send it again later")]
    TooManyLong,
    #[error("the message did not come within {} seconds", MCP_MESSAGE_DEADLINE.as_secs())]
    TooSlow,
    #[error("the body cannot be read")]
    Unreadable,
    #[error("the body is not one JSON-RPC message")]
    NotAMessage,
    #[error("the session could not be begun")]
    Failed,
}

impl HttpRefusal {
    /// What the API calls it.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::ForeignHost | Self::ForeignOrigin => ErrorCode::Forbidden,
            Self::NoSuchSession => ErrorCode::NotFound,
            Self::TooManySessions | Self::TooManyLong => ErrorCode::TooMany,
            Self::TooLong => ErrorCode::TooLarge,
            Self::IdUnderWay | Self::TooSlow | Self::Unreadable | Self::NotAMessage => {
                ErrorCode::InvalidRequest
            }
            Self::Failed => ErrorCode::Internal,
        }
    }
}

/// A response of the protocol.
pub type McpResponse = Response<BoxBody<Bytes, Infallible>>;

/// The server of all clients over HTTP.
#[derive(Clone)]
pub struct HttpServer {
    service: StreamableHttpService<McpServer, LocalSessionManager>,
    sessions: Arc<Sessions>,
    hosts: AllowedHosts,
}

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServer")
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

impl HttpServer {
    /// A server whose tools use `client`, each call with the key of its request.
    #[must_use]
    pub fn new(client: Client, settings: HomeSettings, hosts: AllowedHosts) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(MCP_SESSION_IDLE);
        let manager = Arc::new(manager);
        // Hosts and origins are checked here, by rules that know addresses as well as names.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_json_response(true)
            .with_max_request_body_bytes(MCP_MESSAGE_BYTES_MAX);
        let service = StreamableHttpService::new(
            move || Ok(McpServer::new(client.clone(), settings.clone())),
            Arc::clone(&manager),
            config,
        );
        Self {
            service,
            sessions: Arc::new(Sessions::new(manager)),
            hosts,
        }
    }

    /// Serves a request of a caller.
    ///
    /// # Errors
    /// [`HttpRefusal`] when it was not served.
    pub async fn handle<B>(
        &self,
        caller: &HttpCaller,
        request: Request<B>,
    ) -> Result<McpResponse, HttpRefusal>
    where
        B: http_body::Body + Send + 'static,
    {
        self.hosts.check(request.headers())?;
        let (mut parts, body) = request.into_parts();
        let session = session_of(&parts.headers);
        if let Some(session) = &session {
            self.sessions.belongs(session, &caller.key)?;
        }
        let message = message::read(body, caller.places.as_ref()).await?;
        // Held for as long as the call goes on, which has the parts of its request.
        if let Some(place) = message.place {
            parts.extensions.insert(place);
        }
        let body = Full::new(message.bytes.clone());
        let peek = if parts.method == Method::POST {
            Some(Peek::of(&message.bytes)?)
        } else {
            None
        };
        match session {
            Some(session) => self.in_session(&session, parts, body, peek).await,
            None if peek.is_some_and(|peek| peek.is_initialize()) => {
                self.begin(caller, Request::from_parts(parts, body)).await
            }
            None => Ok(self.service.handle(Request::from_parts(parts, body)).await),
        }
    }

    async fn in_session(
        &self,
        session: &str,
        mut parts: Parts,
        body: Full<Bytes>,
        peek: Option<Peek>,
    ) -> Result<McpResponse, HttpRefusal> {
        if let Some(id) = peek.and_then(|peek| peek.request_id()) {
            let under_way = self.sessions.enter(session, id)?;
            parts.extensions.insert(Arc::new(under_way));
        }
        let ends = parts.method == Method::DELETE;
        let request = Request::from_parts(parts, body);
        let mut response = self.service.handle(request).await;
        let status = response.status();
        // One that could not be ended lives on, and is still its owner's.
        if (ends && status.is_success()) || status == StatusCode::NOT_FOUND {
            self.sessions.forget(session);
        }
        // It has ended; published clients take 202 for a failure.
        if ends && status == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        Ok(response)
    }

    async fn begin(
        &self,
        caller: &HttpCaller,
        request: Request<Full<Bytes>>,
    ) -> Result<McpResponse, HttpRefusal> {
        let place = self.sessions.begin(caller).await?;
        let service = self.service.clone();
        // Not cut short when the client leaves: a session that has begun without an owner would
        // be nobody's to end, and counted for nobody.
        let begun = tokio::spawn(async move {
            let response = service.handle(request).await;
            if let Some(begun) = session_of(response.headers()) {
                place.begun(&begun);
            }
            response
        });
        begun.await.map_err(|_| HttpRefusal::Failed)
    }
}

fn session_of(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(SESSION)?;
    // One that is no text belongs to nobody.
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

impl From<SessionRefusal> for HttpRefusal {
    fn from(refusal: SessionRefusal) -> Self {
        match refusal {
            SessionRefusal::OfSomebodyElse => Self::NoSuchSession,
            SessionRefusal::TooMany => Self::TooManySessions,
            SessionRefusal::IdUnderWay => Self::IdUnderWay,
        }
    }
}
