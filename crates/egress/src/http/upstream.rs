//! The connection to the outside over which requests of one guest connection go.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::task::AbortHandle;

use super::authority::Authority;
use crate::connection::{Dialed, Session, Stream};
use crate::outlet::Allowed;

/// A connection to one host. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Upstream {
    authority: Authority,
    pub(super) sender: SendRequest<Incoming>,
    dialed: Dialed,
    driver: AbortHandle,
}

impl Upstream {
    /// Starts to speak HTTP over a connection that stands.
    pub(super) async fn start(
        session: &Arc<Session>,
        dialed: Dialed,
        authority: Authority,
    ) -> hyper::Result<Self> {
        let stream = Stream::new(Arc::clone(&dialed.socket));
        let (sender, connection) = http1::Builder::new()
            .preserve_header_case(true)
            .max_buf_size(super::BUFFER_BYTES)
            .handshake(TokioIo::new(stream))
            .await?;
        let cut = session.cut().mark().clone();
        let driver = session.outlet().spawn(async move {
            let driven = cut.run_until_cancelled(connection.with_upgrades()).await;
            if let Some(Err(error)) = driven {
                tracing::debug!(%error, "an HTTP connection to the outside ended");
            }
        });
        Ok(Self {
            authority,
            sender,
            dialed,
            driver,
        })
    }

    /// Whether a request for that host can go over it.
    pub(super) fn is_for(&self, authority: &Authority) -> bool {
        self.authority == *authority && !self.sender.is_closed()
    }

    pub(super) fn record_again(&self, allowed: &Allowed) {
        self.dialed.passage.record_again(allowed);
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
