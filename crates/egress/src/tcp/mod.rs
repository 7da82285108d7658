//! Connections of guests.
//!
//! ```text
//! accept -> first bytes -> TLS with a name   -> decide by name    -> resolve -> dial -> relay
//!      \               \-> HTTP              -> each request, in `crate::http`
//!       \               \-> neither, silent  -> decide by address -> dial -> relay
//!        \-> address covered by a rule, or open mode and no port with a name -> dial at once
//! ```

mod address;
mod first_bytes;
mod hello;
mod refuse;
mod relay;
mod splice;
mod tls;

pub use hello::{BrokenHello, Hello, HelloReader};

use std::io;
use std::sync::Arc;
use std::time::Duration;

use dayfly_core::egress::decide_address;
use dayfly_types::egress::{
    DEFAULT_PORTS, Decision, DenyReason, EgressMode, EgressPolicy, EgressRecordKind, EgressTarget,
    NameSource,
};
use dayfly_types::limits::EGRESS_PEEK_DEADLINE;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::connection::{Session, Socket};
use crate::http;
use crate::outlet::{Facts, Outlet};
use first_bytes::FirstBytes;

/// How long a connection that can only be denied may take to say what it is. It is read at all so
/// that the guest is told why.
const HOPELESS_LIMIT: Duration = Duration::from_millis(500);
/// In `observe`, how long to wait for a name before the server may want to speak first.
const SERVER_FIRST_LIMIT: Duration = Duration::from_millis(300);
/// When the process has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Takes connections until the lifecycle ends.
pub(crate) async fn accept(outlet: Arc<Outlet>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => take(&outlet, stream),
            Err(error) if is_of_one(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections of a guest");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_one(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

fn take(outlet: &Arc<Outlet>, stream: TcpStream) {
    let Ok(destination) = rustix::net::sockopt::ip_original_dst(&stream) else {
        // It was not redirected to us, so there is nowhere that it wants to go.
        let _ = stream.set_zero_linger();
        return;
    };
    let Ok(permit) = Arc::clone(outlet.connections()).try_acquire_owned() else {
        let facts = Facts {
            kind: EgressRecordKind::Tcp,
            name: None,
            source: NameSource::None,
            destination: Some(destination),
        };
        outlet.record(facts.record(Decision::Denied, Some(DenyReason::Limit)));
        let _ = stream.set_zero_linger();
        return;
    };
    let _ = stream.set_nodelay(true);
    let session = Session::new(outlet, destination);
    outlet.spawn(async move {
        let pace = Arc::clone(session.outlet().upward());
        let guest = Arc::new(Socket::new(stream, session.ending(), pace));
        let serving = serve(Arc::clone(&session), Arc::clone(&guest));
        session.run(&guest, serving).await;
        drop(permit);
    });
}

async fn serve(session: Arc<Session>, guest: Arc<Socket>) {
    let policy = session.outlet().policy();
    let Some(limit) = read_limit(&policy, &session) else {
        return address::serve(session, guest, Vec::new(), DenyReason::NoName).await;
    };
    match first_bytes::read(&guest, limit).await {
        FirstBytes::Tls(hello) => tls::serve(session, guest, hello).await,
        FirstBytes::BrokenTls => {
            tls::refuse_broken(&session, &guest, DenyReason::Protocol).await;
        }
        FirstBytes::Http(bytes) => http::serve(session, guest, bytes).await,
        FirstBytes::Other(bytes) => {
            address::serve(session, guest, bytes, DenyReason::Protocol).await;
        }
        FirstBytes::Silent(bytes) => {
            address::serve(session, guest, bytes, DenyReason::Timeout).await;
        }
    }
}

/// How long to wait for a name; none when the address alone lets it through and the server may be
/// the one that speaks first.
fn read_limit(policy: &EgressPolicy, session: &Session) -> Option<Duration> {
    let (destination, port) = (session.destination(), session.destination().port());
    let internal = session.outlet().internal();
    let by_address = decide_address(policy, *destination.ip(), port, internal);
    if by_address
        .as_ref()
        .is_ok_and(|verdict| verdict.rule.is_some())
    {
        return None;
    }
    // The port is shut for names as well, so there is nothing to wait for.
    if by_address == Err(DenyReason::AbusePort) && !has_rule(policy, port) {
        return None;
    }
    let has_name = DEFAULT_PORTS.contains(&port);
    match policy.mode() {
        EgressMode::Public if by_address.is_ok() && !has_name => None,
        EgressMode::Observe if by_address.is_ok() && !has_name => Some(SERVER_FIRST_LIMIT),
        EgressMode::Deny => Some(HOPELESS_LIMIT),
        EgressMode::Allowlist if !has_rule(policy, port) => Some(HOPELESS_LIMIT),
        EgressMode::Allowlist | EgressMode::Public | EgressMode::Observe => {
            Some(EGRESS_PEEK_DEADLINE)
        }
    }
}

/// Whether some name could be allowed on this port.
fn has_rule(policy: &EgressPolicy, port: u16) -> bool {
    let named = |target: &EgressTarget| matches!(target, EgressTarget::Host(_));
    let mut rules = policy.rules().iter();
    rules.any(|rule| named(&rule.target) && rule.ports.contains(port))
}
