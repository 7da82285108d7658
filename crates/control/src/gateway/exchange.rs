//! One request to a service, and its answer.

use axum::body::Body;
use axum::response::Response;
use dayfly_node_api::PortStream;
use dayfly_types::limits::{PORT_HEAD_BYTES_MAX, PORT_HEADERS_MAX};
use http::header::UPGRADE;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_util::task::TaskTracker;

use super::address::PortAddress;
use super::bytes::{AnswerBody, NotedStream};
use super::connection::ProxiedConnection;
use super::error::GatewayError;
use super::heads;
use crate::admission::limit::Permit;

/// What a visitor asks of a service, ready to be sent.
pub(super) struct Question<'a> {
    pub(super) address: &'a PortAddress,
    pub(super) request: Request<Body>,
    /// The visitor's connection, when it wants to speak something else, and its place for that.
    pub(super) upgrade: Option<(OnUpgrade, Permit)>,
}

/// Sends the request over a connection of its own, and answers with what comes back. Dropping the
/// future, or the answer's body, closes the connection.
///
/// # Errors
/// [`GatewayError::NoAnswer`], or why the connection was cut.
pub(super) async fn ask(
    tasks: &TaskTracker,
    connection: ProxiedConnection,
    stream: PortStream,
    question: Question<'_>,
) -> Result<Response, GatewayError> {
    let method = question.request.method().clone();
    let stream = TokioIo::new(NotedStream::new(stream, connection.activity()));
    let handshake = http1::Builder::new()
        .max_buf_size(PORT_HEAD_BYTES_MAX)
        .max_headers(PORT_HEADERS_MAX)
        .handshake(stream);
    let (mut sender, to_service) = handshake.await.map_err(no_answer)?;
    let driving = connection.clone();
    tasks.spawn(async move {
        tokio::select! {
            biased;
            () = driving.cut() => {}
            ended = to_service.with_upgrades() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection to a service ended early");
                }
            }
        }
    });
    let answer = tokio::select! {
        biased;
        () = connection.cut() => Err(GatewayError::NoAnswer),
        answer = sender.send_request(question.request) => answer.map_err(no_answer),
    };
    let mut answer = answer.map_err(|error| connection.refusal().unwrap_or(error))?;
    let status = answer.status();
    let protocol = answer.headers().get(UPGRADE).cloned();
    heads::clean_answer(answer.headers_mut(), question.address, &method, status);
    if status != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(answer.map(|body| Body::new(AnswerBody::new(body, connection))));
    }
    // Nobody asked for it, or it does not say for what: nothing could be made of what follows.
    let (Some((outside, place)), Some(protocol)) = (question.upgrade, protocol) else {
        return Err(GatewayError::NoAnswer);
    };
    heads::switch(answer.headers_mut(), protocol);
    let inside = hyper::upgrade::on(&mut answer);
    tasks.spawn(async move {
        tunnel(connection, outside, inside).await;
        drop(place);
    });
    Ok(answer.map(|_: Incoming| Body::empty()))
}

fn no_answer(error: hyper::Error) -> GatewayError {
    tracing::debug!(%error, "no answer from a service");
    GatewayError::NoAnswer
}

/// Moves bytes until both sides have ended, one has broken, or the connection is cut.
async fn tunnel(connection: ProxiedConnection, outside: OnUpgrade, inside: OnUpgrade) {
    let carry = async {
        let (outside, inside) = tokio::try_join!(outside, inside)?;
        let (mut outside, mut inside) = (TokioIo::new(outside), TokioIo::new(inside));
        // Whichever side breaks off ends both; there is nobody to tell.
        let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
        Ok::<(), hyper::Error>(())
    };
    tokio::select! {
        biased;
        () = connection.cut() => {}
        carried = carry => {
            if let Err(error) = carried {
                tracing::debug!(%error, "nobody took an upgraded connection");
            }
        }
    }
}
