//! The way from outside to a service in a sandbox.
//!
//! ```text
//! visitor -> address -> access -> connection -> the node's connection -> heads -> service
//!            which port  may it    counted          only from here on       cleaned
//!                                                   a sandbox may wake
//! ```
//! Visitors and services are both hostile. A visitor must not reach the node before it has shown a
//! key or a link's token, and learns nothing from a refusal. A service must not see what the
//! visitor is known by here, and must not act on anything that shares its host.

mod access;
mod address;
mod bytes;
mod connection;
mod cookies;
mod error;
mod exchange;
pub mod heads;
mod preview;
mod query;
mod token;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use dayfly_node_api::{NodeError, PortStream};
use dayfly_types::limits::{PORT_CONNECT_DEADLINE, PORT_CONNECTIONS_MAX, PORT_IDLE_MAX};
use dayfly_types::{ErrorCode, SandboxId};
use http::header::{CACHE_CONTROL, LOCATION, REFERRER_POLICY, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, Version};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::access::Access;
use self::connection::{ConnectionLimits, Grant, ProxiedConnection, ProxiedConnections};
use self::exchange::Question;
use self::heads::Visitor;
use crate::control::Control;
use crate::http::Arrival;

pub use self::address::{Form, PortAddress};
pub use self::error::GatewayError;
pub(crate) use self::preview::parse_port;
pub(crate) use self::preview::{ApiAddress, VisitScheme};
pub use self::preview::{InvalidPreviewDomain, PreviewDomain};
pub(crate) use self::query::{token as link_token, without_token};
pub(crate) use self::token::{LinkToken, new_link_id};

/// How long connections may take to end after the stop was asked for.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// What the gateway is told.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    pub preview: PreviewDomain,
    /// Until somebody in the sandbox has accepted.
    pub connect_deadline: Duration,
    /// How long no byte may pass.
    pub idle_max: Duration,
    /// Connections to one sandbox.
    pub connections_max: usize,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            preview: PreviewDomain::default(),
            connect_deadline: PORT_CONNECT_DEADLINE,
            idle_max: PORT_IDLE_MAX,
            connections_max: PORT_CONNECTIONS_MAX,
        }
    }
}

/// Who is inside, and what holds for them.
#[derive(Debug, Default)]
pub(crate) struct Gateway {
    pub(crate) settings: GatewaySettings,
    connections: Arc<ProxiedConnections>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Gateway {
    pub(crate) fn new(settings: GatewaySettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Cuts everybody who came by a link that is no longer in the database.
    pub(crate) fn revoke(&self, sandbox: &SandboxId, link: &str) {
        self.connections.revoke(sandbox, link);
    }

    /// Ends every visit.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(STOP_DEADLINE, self.tasks.wait()).await;
    }
}

/// Brings a visitor's request to a service, and its answer back.
///
/// # Errors
/// [`GatewayError`].
pub(crate) async fn pass(
    control: &Control,
    address: &PortAddress,
    mut request: Request<Body>,
) -> Result<Response, GatewayError> {
    if *request.method() == Method::CONNECT {
        return Err(GatewayError::Connect);
    }
    let outside = (request.version() == Version::HTTP_11).then(|| hyper::upgrade::on(&mut request));
    let arrival = request.extensions().get::<Arrival>().copied();
    let (head, body) = request.into_parts();
    let gateway = &control.gateway;
    let settings = &gateway.settings;
    // Before the look-up, so that a link that is revoked meanwhile cuts this visit.
    let pending = gateway.connections.pending(&address.sandbox);
    let access = {
        // Strangers cost a look into the database; they must not keep others from it.
        let _place = control.limits.visitor()?;
        access::decide(control, address, &head).await?
    };
    let access = access.ok_or(GatewayError::Closed)?;
    let wanted = outside.as_ref().and(heads::wanted_upgrade(&head.headers));
    let is_plain_read = matches!(head.method, Method::GET | Method::HEAD) && wanted.is_none();
    let is_shown = is_plain_read && is_navigation(&head.headers);
    let scheme = settings
        .preview
        .scheme(arrival.is_some_and(|arrival| arrival.is_secure));
    if is_shown && let Some(answer) = redirect(scheme, address, &head.uri, &access) {
        return Ok(answer);
    }
    let visitor = Visitor {
        client: arrival.map(|arrival| arrival.client),
        scheme: scheme.as_str(),
        keeps_authorization: access::keeps_authorization(control, &access, &head.headers).await?,
        upgrade: wanted.as_ref(),
    };
    let mut request = Request::new(body);
    *request.uri_mut() = address.target(&head.uri)?;
    *request.method_mut() = head.method;
    *request.headers_mut() = head.headers;
    heads::clean_request(request.headers_mut(), visitor);
    let (project, grant) = match access {
        Access::Key { project, end } => {
            if let Some(arrival) = arrival {
                control.connections.has_shown_a_key(arrival.peer.ip());
            }
            (project, Grant::Key(end))
        }
        Access::Link { project, grant, .. } => (project, Grant::Link(grant)),
    };
    let limits = ConnectionLimits {
        connections_max: settings.connections_max,
        idle_max: settings.idle_max,
    };
    let tunnel = wanted.is_some().then(|| control.limits.tunnel(&project));
    let tunnel = tunnel.transpose()?;
    let connection = pending.enter(grant, limits, gateway.stop.clone())?;
    let stream = connect(control, address, &connection).await?;
    let question = Question {
        address,
        request,
        upgrade: wanted.and(outside).zip(tunnel),
    };
    exchange::ask(&gateway.tasks, connection, stream, question).await
}

/// Whether a browser will show the answer, address and all. Programs do not, and many of them keep
/// no cookie.
fn is_navigation(headers: &HeaderMap) -> bool {
    match heads::text(headers, "sec-fetch-mode") {
        Some(mode) => mode == "navigate",
        // Old browsers, and pages over plain HTTP.
        None => heads::text(headers, "accept").is_some_and(|kinds| kinds.contains("text/html")),
    }
}

/// Sends a visitor whose address has a token to the same one without it, with the token in a
/// cookie: an address is kept, shown and passed on.
fn redirect(
    scheme: VisitScheme,
    address: &PortAddress,
    uri: &Uri,
    access: &Access,
) -> Option<Response> {
    let Access::Link {
        grant,
        query_token: Some(token),
        ..
    } = access
    else {
        return None;
    };
    let seconds = grant.expires_in.as_secs();
    let cookie = cookies::set_cookie(address, token, seconds, scheme)?;
    let target = address.target(uri).ok()?;
    let location = format!("{}{target}", address.prefix());
    // Two slashes would begin another host's address, and browsers read `\` as one.
    let begins_with_two = location.replace('\\', "/").starts_with("//");
    let dot = if begins_with_two { "/." } else { "" };
    let location = HeaderValue::try_from(format!("{dot}{location}")).ok()?;
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SEE_OTHER;
    let headers = answer.headers_mut();
    headers.insert(LOCATION, location);
    headers.insert(SET_COOKIE, cookie);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Some(answer)
}

async fn connect(
    control: &Control,
    address: &PortAddress,
    connection: &ProxiedConnection,
) -> Result<PortStream, GatewayError> {
    let limit = control.gateway.settings.connect_deadline;
    let connecting = control.node.connect_port(&address.sandbox, address.port);
    let connected = tokio::select! {
        biased;
        () = connection.cut() => return Err(connection.refusal().unwrap_or(GatewayError::Stopping)),
        connected = tokio::time::timeout(limit, connecting) => connected,
    };
    match connected {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(not_connected(control, address, error)),
        Err(_) => Err(GatewayError::ConnectTimedOut { limit }),
    }
}

/// The node's word for a port without a service is also its word for a sandbox that it does not
/// have.
fn not_connected(control: &Control, address: &PortAddress, error: NodeError) -> GatewayError {
    let port = address.port;
    let is_there = control.view.knows(&address.sandbox);
    if error.code == ErrorCode::NothingListens {
        return GatewayError::NothingListens { port };
    }
    if error.code != ErrorCode::NotFound {
        return GatewayError::Node(error);
    }
    if is_there {
        GatewayError::NothingListens { port }
    } else {
        GatewayError::Closed
    }
}
