//! `/metrics` for Prometheus, on a listener of its own: whoever reaches that may read it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use dayfly_node_api::NodeCalls as _;
use http::header::CONTENT_TYPE;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::connections::{ConnectionLimits, Connections};
use super::serve::{Listener, serve};
use super::system;
use crate::control::Control;
use crate::metrics::Looked;

const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// A node that hangs must not keep a reader waiting: that it does is what there is to read.
const NODE_DEADLINE: Duration = Duration::from_secs(2);
/// Readers are few.
const READERS: ConnectionLimits = ConnectionLimits {
    all: 64,
    reserved: 0,
    of_one_peer: 16,
    of_one_loopback: 32,
    first_head: Duration::from_secs(5),
};

pub(crate) async fn serve_metrics(
    socket: TcpListener,
    control: &Arc<Control>,
    stop: CancellationToken,
) {
    let router = Router::new()
        .route("/metrics", get(read))
        .with_state(Arc::clone(control));
    let listener = Listener {
        socket,
        tls: None,
        proxies: Arc::default(),
    };
    serve(listener, router, &Arc::new(Connections::new(READERS)), stop).await;
}

async fn read(State(control): State<Arc<Control>>) -> Response {
    let node = tokio::time::timeout(NODE_DEADLINE, control.node.status()).await;
    let conditions = system::held(&control).await;
    let looked = Looked {
        node: node.ok().and_then(Result::ok),
        sandboxes: control.view.counts(),
        conditions: conditions.into_iter().map(|(name, _)| name).collect(),
    };
    let text = control.metrics.text(&looked);
    ([(CONTENT_TYPE, TEXT_FORMAT)], text).into_response()
}
