//! `/metrics` for Prometheus, on a listener of its own: whoever reaches that may read it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use dayfly_node_api::NodeCalls as _;
use dayfly_types::limits::{
    FIRST_HEAD_DEADLINE, METRICS_CONNECTIONS_MAX, METRICS_LOOPBACK_CONNECTIONS_MAX,
    METRICS_PEER_CONNECTIONS_MAX,
};
use http::header::CONTENT_TYPE;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::connections::{ConnectionLimits, Connections};
use super::serve::{Listener, serve};
use super::system;
use super::tls::ShownCertificate;
use crate::control::Control;
use crate::metrics::Looked;

const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// A node that hangs must not keep a reader waiting: that it does is what there is to read.
const NODE_DEADLINE: Duration = Duration::from_secs(2);
/// A reader that comes so soon after another gets the same.
const FRESH: Duration = Duration::from_millis(500);
/// Readers are few.
const READERS: ConnectionLimits = ConnectionLimits {
    all: METRICS_CONNECTIONS_MAX,
    reserved: 0,
    of_one_peer: METRICS_PEER_CONNECTIONS_MAX,
    of_one_loopback: METRICS_LOOPBACK_CONNECTIONS_MAX,
    first_head: FIRST_HEAD_DEADLINE,
};

/// What there is to read of.
pub(crate) struct Watched {
    pub(crate) control: Arc<Control>,
    /// What is shown where TLS is served.
    pub(crate) certificate: Option<Arc<ShownCertificate>>,
    /// Times that this process was started again.
    pub(crate) restarts: u64,
}

/// What was read last: however many ask, the node is asked by one of them.
struct Reading {
    watched: Watched,
    last: Mutex<Option<(Instant, String)>>,
}

pub(crate) async fn serve_metrics(socket: TcpListener, watched: Watched, stop: CancellationToken) {
    let reading = Reading {
        watched,
        last: Mutex::default(),
    };
    let router = Router::new()
        .route("/metrics", get(read))
        .with_state(Arc::new(reading));
    let listener = Listener {
        socket,
        tls: None,
        proxies: Arc::default(),
    };
    serve(listener, router, &Arc::new(Connections::new(READERS)), stop).await;
}

async fn read(State(reading): State<Arc<Reading>>) -> Response {
    let mut last = reading.last.lock().await;
    let text = match &*last {
        Some((at, text)) if at.elapsed() < FRESH => text.clone(),
        Some(_) | None => {
            let text = look(&reading.watched).await;
            *last = Some((Instant::now(), text.clone()));
            text
        }
    };
    ([(CONTENT_TYPE, TEXT_FORMAT)], text).into_response()
}

async fn look(watched: &Watched) -> String {
    let control = &watched.control;
    let certificate = watched.certificate.as_ref();
    let node = tokio::time::timeout(NODE_DEADLINE, control.node.status());
    let (node, conditions) = futures::join!(node, system::held(control));
    let tracer = control.tracer.as_ref();
    let counts = tracer.map(|tracer| tracer.exporter().counts());
    control.metrics.text(&Looked {
        node: node.ok().and_then(Result::ok),
        sandboxes: control.view.counts(),
        conditions: conditions.into_iter().map(|(name, _)| name).collect(),
        spans: counts.map(|counts| (counts.sent(), counts.lost())),
        certificate_ends_at: certificate.and_then(|shown| shown.ends_at()),
        restarts: watched.restarts,
    })
}
