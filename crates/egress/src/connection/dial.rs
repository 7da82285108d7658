//! Connecting to the outside, to exactly the addresses that were looked at.

use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;

use dayfly_types::egress::{DenyReason, HostName};
use dayfly_types::limits::EGRESS_DIAL_DEADLINE;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::{Session, Socket};
use crate::outlet::{NoAddress, Passage};

/// A connection to the outside, on the list until it is dropped.
#[derive(Debug)]
pub(crate) struct Dialed {
    pub(crate) socket: Arc<Socket>,
    pub(crate) passage: Passage,
}

/// Why there is none. It is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotDialed {
    Denied(DenyReason),
    Failed(Option<DenyReason>),
}

/// Resolves a name that was let through, and dials what may be reached of it in turn.
pub(crate) async fn dial_name(
    session: &Session,
    passage: Passage,
    name: &HostName,
) -> Result<Dialed, NotDialed> {
    let port = session.destination().port();
    let resolved = passage.outlet().resolve(name, Some(port), passage.rule());
    let resolved = resolved.await;
    let resolved = match resolved {
        Ok(resolved) => resolved,
        Err(NoAddress::Denied(reason)) => {
            passage.denied(reason);
            return Err(NotDialed::Denied(reason));
        }
        Err(NoAddress::Failed(error)) => {
            tracing::debug!(%error, "cannot resolve");
            let reason = error.reason();
            passage.failed(None, Some(reason));
            return Err(NotDialed::Failed(Some(reason)));
        }
    };
    let addresses = resolved.addresses.into_iter();
    let addresses: Vec<_> = addresses.map(|ip| SocketAddrV4::new(ip, port)).collect();
    dial(session, passage, &addresses).await
}

/// Dials where the guest's packets are addressed to, which was let through.
pub(crate) async fn dial_address(session: &Session, passage: Passage) -> Result<Dialed, NotDialed> {
    dial(session, passage, &[session.destination()]).await
}

async fn dial(
    session: &Session,
    mut passage: Passage,
    addresses: &[SocketAddrV4],
) -> Result<Dialed, NotDialed> {
    let may_dial = match passage.outlet().take_dial() {
        true => passage.aim(addresses),
        false => Err(DenyReason::Limit),
    };
    if let Err(reason) = may_dial {
        passage.denied(reason);
        return Err(NotDialed::Denied(reason));
    }
    let mut last = None;
    let trying = async {
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for &address in addresses {
            last = Some(address);
            match connect(address).await {
                Ok(stream) => return Ok((stream, address)),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    };
    let outcome = timeout(EGRESS_DIAL_DEADLINE, trying).await;
    let outcome = outcome.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match outcome {
        Ok((stream, address)) => {
            let _ = stream.set_nodelay(true);
            let pace = Arc::clone(session.outlet().downward());
            let socket = Arc::new(Socket::new(stream, session.ending(), pace));
            passage.opened(address, Arc::clone(socket.meter()));
            Ok(Dialed { socket, passage })
        }
        Err(error) => {
            tracing::debug!(%error, "cannot connect");
            let reason = unanswered(&error);
            passage.failed(last, reason);
            Err(NotDialed::Failed(reason))
        }
    }
}

async fn connect(address: SocketAddrV4) -> io::Result<TcpStream> {
    TcpSocket::new_v4()?.connect(address.into()).await
}

fn unanswered(error: &io::Error) -> Option<DenyReason> {
    let kind = error.kind();
    if kind == io::ErrorKind::TimedOut {
        return Some(DenyReason::Timeout);
    }
    let has_no_way = [
        io::ErrorKind::NetworkUnreachable,
        io::ErrorKind::NetworkDown,
    ]
    .contains(&kind);
    has_no_way.then_some(DenyReason::NoUplink)
}
