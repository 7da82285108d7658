//! A whole control plane: database, node client, watcher and HTTP.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dayfly_node_api::{NodeApi, NodeClient};
use dayfly_oidc::InvalidAuthority;
use dayfly_trace::StartExportError;
use futures::future::join_all;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::config::ControlConfig;
use crate::control::Control;
use crate::http::{
    InProcess, Listener, MakeBuilder, MakeMcp, ShownCertificate, TrustedProxies, Watched,
};
use crate::store::{Store, StoreError};
use crate::tenancy::key::KeyHash;
use crate::tenancy::sign_in::SignIn;
use crate::{http, reconcile, time};

/// How long creates and deletes may go on after the last connection closed.
const TASKS_DEADLINE: Duration = Duration::from_secs(30);

/// Why a control plane could not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot use the database")]
    Store(#[from] StoreError),
    #[error("cannot use the socket that the API is served on")]
    Listen(#[source] std::io::Error),
    #[error("cannot set TLS up")]
    Tls(#[source] rustls::Error),
    #[error("people cannot sign in")]
    SignIn(#[from] InvalidAuthority),
    #[error("cannot send traces")]
    Traces(#[from] StartExportError),
}

/// A control plane that listens and has not begun to answer.
pub struct Server {
    control: Arc<Control>,
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<(TcpListener, TlsAcceptor)>,
    shown: Option<Arc<ShownCertificate>>,
    metrics: Option<(TcpListener, u64)>,
    proxies: TrustedProxies,
    clients: InProcess,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the database. The node need not be there yet.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn bind(config: ControlConfig) -> Result<Self, RunError> {
        let store = Store::open(&config.database).await?;
        store
            .ensure_admin_key(&config.admin_key.to_hex(), time::now_ms())
            .await?;
        let local_key = config.local_key.map(KeyHash::to_hex);
        let kept = store.ensure_local_key(local_key.as_deref(), time::now_ms());
        if let Err(error) = kept.await {
            // A full disk must keep nobody from starting; see `with_local_key`.
            tracing::error!(%error, "the key of the people on this host could not be changed");
        }
        let sign_in = config.sign_in.map(SignIn::new).transpose()?;
        let digest = sign_in.as_ref().map_or("", SignIn::digest);
        if let Err(error) = store.end_other_sign_ins(digest, time::now_ms()).await {
            // As above; see `look_up_hash`.
            tracing::error!(%error, "what people signed in for could not be ended in the database");
        }
        let node: Arc<dyn NodeApi> = Arc::new(NodeClient::new(config.node_socket));
        let beside_database = config.database.parent().map(Path::to_owned);
        let control = Control::new(store, node, config.cell, config.node_id)
            .with_local_key(config.local_key)
            .with_reconcile(config.reconcile)
            .with_internal_networks(config.internal_networks)
            .with_sign_in(sign_in)
            .with_gateway(config.gateway);
        let control = match beside_database {
            Some(directory) => control.with_build_directory(directory),
            None => control,
        };
        let control = match config.traces {
            Some(traces) => control.with_traces(traces)?,
            None => control,
        };
        Self::with_control(Arc::new(control), config.listener)
    }

    /// A server over parts that were made elsewhere.
    ///
    /// # Errors
    /// [`RunError::Listen`].
    pub fn with_control(
        control: Arc<Control>,
        listener: std::net::TcpListener,
    ) -> Result<Self, RunError> {
        let listener = taken_over(listener)?;
        let address = listener.local_addr().map_err(RunError::Listen)?;
        Ok(Self {
            control,
            listener,
            address,
            tls: None,
            shown: None,
            metrics: None,
            proxies: TrustedProxies::default(),
            clients: InProcess::default(),
        })
    }

    /// Serves `/mcp` too.
    #[must_use]
    pub fn with_mcp(mut self, make_mcp: MakeMcp) -> Self {
        self.clients.make_mcp = Some(make_mcp);
        self
    }

    /// Runs builds of templates too.
    #[must_use]
    pub fn with_builder(mut self, make_builder: MakeBuilder) -> Self {
        self.clients.make_builder = Some(make_builder);
        self
    }

    /// Serves the same over TLS, on a socket of its own.
    ///
    /// # Errors
    /// [`RunError::Listen`], [`RunError::Tls`].
    pub fn with_tls(
        mut self,
        listener: std::net::TcpListener,
        shown: Arc<ShownCertificate>,
    ) -> Result<Self, RunError> {
        let acceptor = http::tls::acceptor(Arc::clone(&shown)).map_err(RunError::Tls)?;
        self.shown = Some(shown);
        self.tls = Some((taken_over(listener)?, acceptor));
        Ok(self)
    }

    /// Lets Prometheus read `/metrics`, without a key, on a socket of its own; also that this
    /// process was started again so often.
    ///
    /// # Errors
    /// [`RunError::Listen`].
    pub fn with_metrics(
        mut self,
        listener: std::net::TcpListener,
        restarts: u64,
    ) -> Result<Self, RunError> {
        self.metrics = Some((taken_over(listener)?, restarts));
        Ok(self)
    }

    /// Takes the word of these for who asks.
    #[must_use]
    pub fn with_trusted_proxies(mut self, proxies: TrustedProxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Where it listens; useful when port 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `shutdown`, then ends requests, work and database in this order.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let watcher = tokio::spawn(reconcile::watch(Arc::clone(&self.control)));
        let auditing = Arc::clone(&self.control);
        let auditor = tokio::spawn(async move {
            let (store, conditions) = (&auditing.store, &auditing.conditions);
            let settings = auditing.reconcile.audit;
            auditing.audit.write(store, conditions, settings).await;
        });
        tracing::info!(address = %self.address, "listening");
        let control = Arc::clone(&self.control);
        let router = http::router_with(control, self.clients);
        let stop = CancellationToken::new();
        let proxies = Arc::new(self.proxies);
        let sockets = std::iter::once((self.listener, None))
            .chain(self.tls.map(|(socket, acceptor)| (socket, Some(acceptor))));
        let serving = sockets.map(|(socket, tls)| {
            let listener = Listener {
                socket,
                tls,
                proxies: Arc::clone(&proxies),
            };
            let connections = &self.control.connections;
            http::serve(listener, router.clone(), connections, stop.clone())
        });
        let ending = async {
            shutdown.await;
            stop.cancel();
        };
        let metrics = async {
            if let Some((socket, restarts)) = self.metrics {
                let watched = Watched {
                    control: Arc::clone(&self.control),
                    certificate: self.shown,
                    restarts,
                };
                http::serve_metrics(socket, watched, stop.clone()).await;
            }
        };
        futures::join!(join_all(serving), metrics, ending);
        self.control.builds.cancel(None);
        self.control.gateway.close().await;
        self.control.tasks.close();
        let _ = tokio::time::timeout(TASKS_DEADLINE, self.control.tasks.wait()).await;
        watcher.abort();
        self.control.audit.end().await;
        auditor.abort();
        if let Some(tracer) = &self.control.tracer {
            tracer.exporter().end().await;
        }
        self.control.store.close().await;
    }
}

fn taken_over(listener: std::net::TcpListener) -> Result<TcpListener, RunError> {
    listener.set_nonblocking(true).map_err(RunError::Listen)?;
    TcpListener::from_std(listener).map_err(RunError::Listen)
}

/// Runs a control plane until `shutdown`.
///
/// # Errors
/// [`RunError`] when it cannot start.
pub async fn run(
    config: ControlConfig,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    Server::bind(config).await?.serve(shutdown).await;
    Ok(())
}
