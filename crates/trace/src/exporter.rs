//! Sends spans away, beside everything else.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dayfly_types::limits::{
    TRACE_BATCH_DELAY, TRACE_BATCH_SPANS_MAX, TRACE_EXPORT_TRIES_MAX, TRACE_LAST_DEADLINE,
    TRACE_QUEUE_REQUESTS_MAX, TRACE_RETRY_PAUSE_MAX,
};
use dayfly_types::{Backoff, error_chain};
use http::StatusCode;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::encode::encode;
use crate::settings::ExportSettings;
use crate::span::Span;

const CONTENT: &str = "application/x-protobuf";
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Why spans cannot be sent at all.
#[derive(Debug, thiserror::Error)]
pub enum StartExportError {
    #[error("cannot set up the connection to the receiver of traces")]
    Http(#[source] reqwest::Error),
}

/// How many spans were sent and how many were lost.
#[derive(Debug, Default)]
pub struct Counts {
    sent: AtomicU64,
    lost: AtomicU64,
}

impl Counts {
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Spans that are not even tried.
    pub fn lose(&self, spans: usize) {
        self.lost.fetch_add(spans as u64, Ordering::Relaxed);
    }

    fn send(&self, spans: usize) {
        self.sent.fetch_add(spans as u64, Ordering::Relaxed);
    }
}

/// Takes spans of requests and sends them in batches. Whoever gives some never waits: what does not
/// fit into the queue is lost, and counted.
#[derive(Debug)]
pub struct Exporter {
    queue: mpsc::Sender<Vec<Span>>,
    counts: Arc<Counts>,
    ending: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Exporter {
    /// Begins to send, in a task of the current runtime.
    ///
    /// # Errors
    /// [`StartExportError`]; a receiver that is not there is none.
    pub fn start(settings: ExportSettings) -> Result<Self, StartExportError> {
        let (queue, waiting) = mpsc::channel(TRACE_QUEUE_REQUESTS_MAX);
        let (counts, ending) = (Arc::<Counts>::default(), CancellationToken::new());
        let sender = Sender::new(settings, Arc::clone(&counts), ending.clone())?;
        let task = tokio::spawn(sender.run(waiting));
        Ok(Self {
            queue,
            counts,
            ending,
            task: Mutex::new(Some(task)),
        })
    }

    /// Sends these some time.
    pub fn give(&self, spans: Vec<Span>) {
        if let Err(refused) = self.queue.try_send(spans) {
            self.counts.lose(refused.into_inner().len());
        }
    }

    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Sends what waits and ends, within a moment.
    pub async fn end(&self) {
        self.ending.cancel();
        let task = self
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut task) = task
            && timeout(TRACE_LAST_DEADLINE, &mut task).await.is_err()
        {
            task.abort();
        }
    }
}

/// What one message came to.
enum Outcome {
    Taken,
    /// Worth another try, after this pause if the receiver named one.
    Later(Option<Duration>, String),
    Refused(String),
}

struct Sender {
    client: Client,
    settings: ExportSettings,
    resource: Vec<(String, String)>,
    counts: Arc<Counts>,
    ending: CancellationToken,
    /// Told once, until a message is taken again.
    is_failing: bool,
}

impl Sender {
    fn new(
        settings: ExportSettings,
        counts: Arc<Counts>,
        ending: CancellationToken,
    ) -> Result<Self, StartExportError> {
        // Refused when the program has chosen one, which is then used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("dayfly/", env!("CARGO_PKG_VERSION")))
            .timeout(settings.deadline)
            // What is in the headers is for one receiver, and no proxy.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        if settings.endpoint.scheme() == "http" {
            // A host without certificates can send to a receiver that shows none.
            builder = builder.tls_certs_only([]);
        }
        Ok(Self {
            client: builder.build().map_err(StartExportError::Http)?,
            resource: BTreeMap::clone(&settings.resource).into_iter().collect(),
            settings,
            counts,
            ending,
            is_failing: false,
        })
    }

    /// Ends when nothing waits any more after the end was asked for.
    async fn run(mut self, mut waiting: mpsc::Receiver<Vec<Span>>) {
        let ending = self.ending.clone();
        loop {
            let first = tokio::select! {
                biased;
                spans = waiting.recv() => spans,
                () = ending.cancelled() => None,
            };
            let Some(mut batch) = first else { return };
            let until = Instant::now() + TRACE_BATCH_DELAY;
            while batch.len() < TRACE_BATCH_SPANS_MAX {
                let more = tokio::select! {
                    biased;
                    more = waiting.recv() => more,
                    () = sleep_until(until) => None,
                    () = ending.cancelled() => None,
                };
                let Some(more) = more else { break };
                batch.extend(more);
            }
            self.send(&batch).await;
        }
    }

    async fn send(&mut self, batch: &[Span]) {
        let body = encode(&self.resource, batch);
        let mut backoff = Backoff::new(RETRY_PAUSE, TRACE_RETRY_PAUSE_MAX);
        let mut tries = 1;
        let reason = loop {
            match self.post(body.clone()).await {
                Outcome::Taken => {
                    self.counts.send(batch.len());
                    if self.is_failing {
                        self.is_failing = false;
                        tracing::info!("traces are taken again");
                    }
                    return;
                }
                Outcome::Refused(reason) => break reason,
                Outcome::Later(_, reason) if tries >= TRACE_EXPORT_TRIES_MAX => break reason,
                Outcome::Later(pause, reason) => {
                    let pause = pause.unwrap_or_else(|| backoff.pause());
                    tokio::select! {
                        () = sleep(pause.min(TRACE_RETRY_PAUSE_MAX)) => {}
                        () = self.ending.cancelled() => break reason,
                    }
                    tries += 1;
                }
            }
        };
        self.counts.lose(batch.len());
        if !self.is_failing {
            self.is_failing = true;
            tracing::warn!(reason, "traces are lost: their receiver does not take them");
        }
    }

    async fn post(&self, body: Vec<u8>) -> Outcome {
        let request = self
            .client
            .post(self.settings.endpoint.clone())
            .headers(self.settings.headers.clone())
            .header(CONTENT_TYPE, CONTENT)
            .body(body);
        match request.send().await {
            Ok(response) if response.status().is_success() => Outcome::Taken,
            Ok(response) => refused(&response),
            // Without the address, which says more than is good for a log.
            Err(error) => Outcome::Later(None, error_chain(&error.without_url())),
        }
    }
}

/// The statuses after which OTLP asks for another try.
fn refused(response: &Response) -> Outcome {
    let status = response.status();
    let reason = format!("status {}", status.as_u16());
    let again = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::BAD_GATEWAY,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ];
    if !again.contains(&status) {
        return Outcome::Refused(reason);
    }
    let pause = response.headers().get(RETRY_AFTER);
    let seconds = pause.and_then(|value| value.to_str().ok()?.parse().ok());
    Outcome::Later(seconds.map(Duration::from_secs), reason)
}
