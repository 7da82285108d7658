//! The control plane of a node, with its database and its listeners.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_control::store::{KeyRow, Store};
use dayfly_control::tenancy::scope::{Reach, Scopes};
use dayfly_control::{Control, PresentedKey, ReconcileSettings, Server};
use dayfly_node_api::{NodeCalls as _, NodeClient, server, socket};
use dayfly_types::{CellName, NodeId, ProjectId};
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;

use crate::home::{Home, OwnNode};

/// Whose all sandboxes are.
pub(crate) const PROJECT: &str = "default";
/// How long 50,000 rows may take on a slow disk.
const ADOPTION_DEADLINE: Duration = Duration::from_secs(900);

/// A control plane in a runtime of its own, as it is a process of its own on a host.
#[derive(Debug)]
pub(crate) struct OwnControl {
    pub(crate) control: Arc<Control>,
    pub(crate) address: SocketAddr,
    pub(crate) metrics: SocketAddr,
    pub(crate) key: String,
    runtime: OwnRuntime,
}

/// Starts one on a database that lost its rows, and waits until it has adopted all sandboxes.
pub(crate) async fn start(
    home: &Home,
    node: &OwnNode,
    count: u32,
) -> Result<(OwnControl, Duration)> {
    let path = home.path("node.sock");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let served = Arc::clone(&node.node);
    let listener = node.run(async move { socket::listen(&path) }).await??;
    node.spawn(server::serve(listener, served, std::future::pending()));
    // The operator's word: the database is new and the node is not.
    node.node.accept_database().await?;
    let began = Instant::now();
    let (socket, database) = (home.path("node.sock"), home.path("control.db"));
    let handle = runtime.handle().clone();
    // On a thread of its own: what opens a database cannot be a task.
    let serve = move || handle.block_on(serve(&socket, &database));
    let made = tokio::task::spawn_blocking(serve).await??;
    let (control, address, metrics, key) = made;
    let own = OwnControl {
        control,
        address,
        metrics,
        key,
        runtime: OwnRuntime {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        },
    };
    own.wait_for_rows(count).await?;
    Ok((own, began.elapsed()))
}

type Served = (Arc<Control>, SocketAddr, SocketAddr, String);

async fn serve(socket: &Path, database: &Path) -> Result<Served> {
    let store = Store::open(database).await?;
    let key = add_key(&store).await?;
    let client = Arc::new(NodeClient::new(socket));
    // Only what waits for a row to turn up is shorter than in the product.
    let reconcile = ReconcileSettings {
        orphan_after: Duration::ZERO,
        ..ReconcileSettings::default()
    };
    let control = Control::new(
        store,
        client,
        CellName::local(),
        NodeId::parse("node-growth")?,
    )
    .with_reconcile(reconcile);
    let control = Arc::new(control);
    let bind = || TcpListener::bind("127.0.0.1:0");
    let metrics = bind()?;
    let metrics_address = metrics.local_addr()?;
    let server = Server::with_control(Arc::clone(&control), bind()?)?.with_metrics(metrics, 0)?;
    let address = server.address();
    tokio::spawn(server.serve(std::future::pending()));
    Ok((control, address, metrics_address, key))
}

async fn add_key(store: &Store) -> Result<String> {
    let key = PresentedKey::generate().context("no key")?;
    let project = ProjectId::parse(PROJECT)?;
    store.ensure_project(&project, 1).await?;
    let row = KeyRow {
        hash: key.hash().to_hex(),
        project,
        prefix: key.prefix().to_owned(),
        reach: Reach::everywhere(Scopes::operator()),
        label: String::new(),
        made_by: None,
        person: None,
        created_at_ms: 1,
        expires_at_ms: None,
        revoked_at_ms: None,
    };
    store.ensure_key(&row).await?;
    Ok(key.reveal().to_owned())
}

impl OwnControl {
    /// Does something as a task of the control plane.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        self.spawn(work).await.context("the work panicked")
    }

    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime.handle.spawn(work)
    }

    async fn wait_for_rows(&self, count: u32) -> Result<()> {
        let project = ProjectId::parse(PROJECT)?;
        let deadline = Instant::now() + ADOPTION_DEADLINE;
        loop {
            let used = self.control.store.used(&project).await?;
            if used.sandboxes == u64::from(count) {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "{} of {count} sandboxes have rows",
                used.sandboxes
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// A runtime may not be dropped where others run, as it would be when a measurement fails.
#[derive(Debug)]
struct OwnRuntime {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
