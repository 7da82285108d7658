//! The two sockets that questions come over.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::answer::{Local, answer_from_upstream, answer_here, record_limit};
use super::question::{Parsed, Question, parse};
use crate::outlet::Outlet;

/// Questions of one lifecycle that wait for an upstream answer.
const WAITING_MAX: usize = 64;
/// Connections of one lifecycle over which questions come.
const CONNECTIONS_MAX: usize = 16;
const QUESTIONS_PER_CONNECTION: usize = 256;
/// How long a client has between two questions, or to take an answer.
const TURN_LIMIT: Duration = Duration::from_secs(5);
/// Larger than any question that is answered.
const UDP_BYTES_MAX: usize = 4096;
const PAUSE: Duration = Duration::from_millis(50);

/// Answers questions by UDP until the lifecycle ends.
pub(crate) async fn serve_udp(outlet: Arc<Outlet>, socket: UdpSocket) {
    let socket = Arc::new(socket);
    let waiting = Arc::new(Semaphore::new(WAITING_MAX));
    let mut buffer = vec![0; UDP_BYTES_MAX];
    loop {
        match socket.recv_from(&mut buffer).await {
            Ok((count, peer)) => {
                take_datagram(&outlet, &socket, &waiting, &buffer[..count], peer).await;
            }
            // An earlier answer found nobody. That is told here.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => {
                tracing::warn!(%error, "cannot receive questions of a guest");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn take_datagram(
    outlet: &Arc<Outlet>,
    socket: &Arc<UdpSocket>,
    waiting: &Arc<Semaphore>,
    packet: &[u8],
    peer: SocketAddr,
) {
    // Too many are dropped without a word, so that a client asks again later.
    if !outlet.take_question() {
        return record_limit(outlet);
    }
    let question = match parse(packet) {
        Parsed::Question(question) => question,
        Parsed::Refused(reply) => return send(socket, &reply, peer).await,
        Parsed::Nothing => return,
    };
    let (name, allowed) = match answer_here(outlet, &question) {
        Local::Ask(name, allowed) => (name, allowed),
        Local::Reply(Some(reply)) => return send(socket, &reply, peer).await,
        Local::Reply(None) => return,
    };
    let Ok(permit) = Arc::clone(waiting).try_acquire_owned() else {
        return record_limit(outlet);
    };
    let (asking, socket) = (Arc::clone(outlet), Arc::clone(socket));
    outlet.spawn(async move {
        let reply = answer_from_upstream(&asking, &question, &name, &allowed).await;
        if let Some(reply) = reply {
            send(&socket, &reply, peer).await;
        }
        drop(permit);
    });
}

async fn send(socket: &UdpSocket, reply: &[u8], peer: SocketAddr) {
    // The guest asks again when an answer is lost.
    let _ = timeout(TURN_LIMIT, socket.send_to(reply, peer)).await;
}

/// Answers questions by TCP until the lifecycle ends.
pub(crate) async fn serve_tcp(outlet: Arc<Outlet>, listener: TcpListener) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else {
                    record_limit(&outlet);
                    let _ = stream.set_zero_linger();
                    continue;
                };
                let answering = Arc::clone(&outlet);
                outlet.spawn(async move {
                    if let Err(error) = converse(&answering, stream).await {
                        tracing::debug!(%error, "a guest's questions by TCP ended");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept questions of a guest");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn converse(outlet: &Arc<Outlet>, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    for _ in 0..QUESTIONS_PER_CONNECTION {
        let packet = timeout(TURN_LIMIT, read_packet(&mut stream)).await??;
        if !outlet.take_question() {
            record_limit(outlet);
            return Ok(());
        }
        let reply = match parse(&packet) {
            Parsed::Question(question) => answer(outlet, &question).await,
            Parsed::Refused(reply) => Some(reply),
            Parsed::Nothing => None,
        };
        let Some(reply) = reply else {
            return Ok(());
        };
        timeout(TURN_LIMIT, write_packet(&mut stream, &reply)).await??;
    }
    Ok(())
}

async fn answer(outlet: &Arc<Outlet>, question: &Question) -> Option<Vec<u8>> {
    match answer_here(outlet, question) {
        Local::Reply(reply) => reply,
        Local::Ask(name, allowed) => answer_from_upstream(outlet, question, &name, &allowed).await,
    }
}

async fn read_packet(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    if usize::from(length) > UDP_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut packet = vec![0; length.into()];
    stream.read_exact(&mut packet).await?;
    Ok(packet)
}

async fn write_packet(stream: &mut TcpStream, packet: &[u8]) -> io::Result<()> {
    let length = u16::try_from(packet.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    stream
        .write_all(&[&length.to_be_bytes(), packet].concat())
        .await
}
