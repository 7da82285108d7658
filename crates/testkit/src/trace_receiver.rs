//! A receiver of traces that reads them with the published messages.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
pub use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
pub use opentelemetry_proto::tonic::common::v1::any_value::Value;
pub use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::sync::mpsc;

const SOON: Duration = Duration::from_secs(60);

/// Listens where `OTEL_EXPORTER_OTLP_ENDPOINT` says: at [`TraceReceiver::url`].
#[derive(Debug)]
pub struct TraceReceiver {
    address: SocketAddr,
    got: mpsc::Receiver<ReceivedSpans>,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedSpans {
    pub headers: HeaderMap,
    pub message: ExportTraceServiceRequest,
}

#[derive(Debug)]
struct Receiving {
    /// What to respond with, the last first; then success.
    statuses: Mutex<Vec<StatusCode>>,
    to: mpsc::Sender<ReceivedSpans>,
}

impl TraceReceiver {
    /// Starts one that responds with these statuses first.
    ///
    /// # Errors
    /// When it cannot listen.
    pub async fn start(statuses: &[StatusCode]) -> std::io::Result<Self> {
        let (to, got) = mpsc::channel(1024);
        let statuses = statuses.iter().rev().copied().collect();
        let statuses = Mutex::new(statuses);
        let router = Router::new()
            .route("/v1/traces", post(receive))
            .with_state(Arc::new(Receiving { statuses, to }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, got })
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next message; `None` when none comes.
    pub async fn next(&mut self) -> Option<ReceivedSpans> {
        tokio::time::timeout(SOON, self.got.recv()).await.ok()?
    }

    /// A message that is there already.
    pub fn try_next(&mut self) -> Option<ReceivedSpans> {
        self.got.try_recv().ok()
    }

    /// All spans up to the one that is looked for. Without it when it does not come.
    pub async fn until(&mut self, is_last: impl Fn(&Span) -> bool) -> Vec<Span> {
        let mut spans = Vec::new();
        while let Some(received) = self.next().await {
            spans.extend(received.spans().cloned());
            if spans.iter().any(&is_last) {
                break;
            }
        }
        spans
    }
}

impl ReceivedSpans {
    pub fn spans(&self) -> impl Iterator<Item = &Span> {
        let resources = self.message.resource_spans.iter();
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| &scope.spans)
    }

    /// What is said of whoever sent it.
    #[must_use]
    pub fn resource(&self) -> HashMap<&str, &str> {
        let resources = self.message.resource_spans.iter();
        let described = resources.filter_map(|resource| resource.resource.as_ref());
        let pairs = described.flat_map(|resource| &resource.attributes);
        let texts = pairs.filter_map(|pair| {
            let value = pair.value.as_ref()?.value.as_ref()?;
            let Value::StringValue(text) = value else {
                return None;
            };
            Some((pair.key.as_str(), text.as_str()))
        });
        texts.collect()
    }
}

/// One attribute of a span.
#[must_use]
pub fn attribute<'a>(span: &'a Span, key: &str) -> Option<&'a Value> {
    let pair = span.attributes.iter().find(|pair| pair.key == key)?;
    pair.value.as_ref()?.value.as_ref()
}

async fn receive(
    State(receiving): State<Arc<Receiving>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let Ok(message) = ExportTraceServiceRequest::decode(body) else {
        return StatusCode::BAD_REQUEST;
    };
    let status = match receiving.statuses.lock() {
        Ok(mut statuses) => statuses.pop(),
        Err(_) => None,
    };
    // Whoever does not read any more has seen enough.
    let _ = receiving.to.send(ReceivedSpans { headers, message }).await;
    status.unwrap_or(StatusCode::OK)
}
