//! Connecting to the outside, to exactly the addresses that were looked at.

use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;

use dayfly_types::egress::{DenyReason, HostName};
use dayfly_types::limits::EGRESS_DIAL_DEADLINE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::{Session, Socket};
use crate::outlet::{NoAddress, Passage};

/// What a proxy says before a connection stands.
const PROXY_HEAD_BYTES_MAX: usize = 8 << 10;

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
    // Whoever could speak to the proxy could ask it for anything.
    let proxy = passage.outlet().proxy().map(|proxy| *proxy.ip());
    let is_other = |address: &&SocketAddrV4| Some(*address.ip()) != proxy;
    let addresses: Vec<_> = addresses.iter().filter(is_other).copied().collect();
    let may_dial = match passage.outlet().take_dial() {
        true if addresses.is_empty() => Err(DenyReason::NeverAddress),
        true => passage.aim(&addresses),
        false => Err(DenyReason::Limit),
    };
    if let Err(reason) = may_dial {
        passage.denied(reason);
        return Err(NotDialed::Denied(reason));
    }
    let mut last = None;
    let trying = async {
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for &address in &addresses {
            last = Some(address);
            let connected = match passage.way_to(address) {
                Some(proxy) => through_proxy(proxy, address).await,
                None => connect(address).await,
            };
            match connected {
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

/// Asks a proxy for a connection to the address that was looked at. It is not asked by name: it
/// would look the name up by itself.
async fn through_proxy(proxy: SocketAddrV4, address: SocketAddrV4) -> io::Result<TcpStream> {
    let mut stream = connect(proxy).await?;
    let request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    // One byte at a time: what follows the head is the host's own.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= PROXY_HEAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.push(stream.read_u8().await?);
    }
    let is_http = head.starts_with(b"HTTP/1.1 ") || head.starts_with(b"HTTP/1.0 ");
    if is_http && head.get(9) == Some(&b'2') {
        Ok(stream)
    } else {
        Err(io::ErrorKind::ConnectionRefused.into())
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
