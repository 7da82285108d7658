//! A whole control plane over a fake node, with the real node client and server in between.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use dayfly_control::admission::limit::Limits;
use dayfly_control::store::{KeyRow, Store};
use dayfly_control::tenancy::scope::{Reach, Scopes};
use dayfly_control::{
    ConnectionLimits, Control, GatewaySettings, KeyHash, PresentedKey, ReconcileSettings, Server,
    ShownCertificate, SignIn, SignInConfig, SignInSettings, TrustedProxies,
};
use dayfly_node_api::{NodeClient, server, socket};
use dayfly_trace::ExportSettings;
use dayfly_types::egress::InternalNetworks;
use dayfly_types::{CellName, NodeId, ProjectId};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::task::JoinHandle;

use super::fake_node::FakeNode;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) node: Arc<FakeNode>,
    pub(crate) control: Arc<Control>,
    pub(crate) address: SocketAddr,
    /// Where TLS is served, if it is.
    pub(crate) tls_address: Option<SocketAddr>,
    /// Where `/metrics` is, if it is.
    pub(crate) metrics_address: Option<SocketAddr>,
    /// A key of the project `default`.
    pub(crate) key: String,
    /// A key of another project.
    pub(crate) foreign_key: String,
    pub(crate) http: Client<HttpConnector, Body>,
    socket: PathBuf,
    node_task: std::sync::Mutex<Option<JoinHandle<()>>>,
    tasks: Vec<JoinHandle<()>>,
    directory: tempfile::TempDir,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {:?}", self.body))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Checks that this is the documented envelope, and answers its code.
    pub(crate) fn refusal(&self) -> String {
        let json = self.json();
        assert!(!json["error"].as_str().unwrap().is_empty());
        assert_eq!(self.headers["content-type"], "application/json");
        assert_eq!(
            json["request_id"],
            self.headers["x-request-id"].to_str().unwrap()
        );
        json["code"].as_str().unwrap().to_owned()
    }
}

/// How the world of a test differs from the usual one.
#[derive(Debug, Default)]
pub(crate) struct Setup {
    pub(crate) limits: Limits,
    pub(crate) reconcile: ReconcileSettings,
    pub(crate) gateway: GatewaySettings,
    /// Where the database is, when not in a directory of its own.
    pub(crate) database: Option<PathBuf>,
    /// A node that has been there before.
    pub(crate) node: Option<Arc<FakeNode>>,
    pub(crate) connections: ConnectionLimits,
    /// The key of the people on the host.
    pub(crate) local_key: Option<KeyHash>,
    /// What is shown where TLS is served, beside the plain listener.
    pub(crate) tls: Option<Arc<ShownCertificate>>,
    /// Whether `/metrics` is served.
    pub(crate) has_metrics: bool,
    /// Whose word is taken for who asks.
    pub(crate) proxies: TrustedProxies,
    /// What of private space the operator has opened.
    pub(crate) internal_networks: InternalNetworks,
    /// How people sign in.
    pub(crate) sign_in: Option<SignInSettings>,
    /// Where traces are sent.
    pub(crate) traces: Option<ExportSettings>,
}

impl Setup {
    /// Rows and node are compared so often, and given up so soon, that a test can wait for it.
    pub(crate) fn quick() -> Self {
        let reconcile = ReconcileSettings {
            interval: Duration::from_millis(100),
            lost_after: Duration::from_millis(300),
            orphan_after: Duration::from_millis(300),
            stray_after: Duration::from_millis(300),
            ..ReconcileSettings::default()
        };
        Self {
            reconcile,
            ..Self::default()
        }
    }
}

/// Lets this process have as many descriptors as it may.
pub(crate) fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = getrlimit(Resource::Nofile).maximum;
    let wanted = Rlimit {
        current: most,
        maximum: most,
    };
    setrlimit(Resource::Nofile, wanted).unwrap();
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("node.sock");
        let node = setup.node.unwrap_or_default();
        let beside = setup.database.as_deref().unwrap_or(directory.path());
        let store = Store::open(&beside.join("control.db")).await.unwrap();
        let key = add_key(&store, "default").await;
        let foreign_key = add_key(&store, "other").await;
        let client = Arc::new(NodeClient::new(&socket));
        let node_id = NodeId::parse("fake").unwrap();
        let sign_in = setup.sign_in.map(signed_in_by);
        let control = Control::new(store, client, CellName::local(), node_id)
            .with_limits(setup.limits)
            .with_reconcile(setup.reconcile)
            .with_gateway(setup.gateway)
            .with_connections(setup.connections)
            .with_internal_networks(setup.internal_networks)
            .with_sign_in(sign_in)
            .with_local_key(setup.local_key);
        let control = match setup.traces {
            Some(traces) => control.with_traces(traces).unwrap(),
            None => control,
        };
        let control = Arc::new(control);
        let bind = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::with_control(Arc::clone(&control), bind()).unwrap();
        let mut server = server
            .with_mcp(super::mcp::mount())
            .with_builder(dayfly_build_mount::mount())
            .with_trusted_proxies(setup.proxies);
        let mut tls_address = None;
        if let Some(shown) = setup.tls {
            let listener = bind();
            tls_address = Some(listener.local_addr().unwrap());
            server = server.with_tls(listener, shown).unwrap();
        }
        let mut metrics_address = None;
        if setup.has_metrics {
            let listener = bind();
            metrics_address = Some(listener.local_addr().unwrap());
            server = server.with_metrics(listener, 2).unwrap();
        }
        let address = server.address();
        let mut world = Self {
            node,
            control,
            address,
            tls_address,
            metrics_address,
            key,
            foreign_key,
            http: Client::builder(TokioExecutor::new()).build_http(),
            socket,
            node_task: std::sync::Mutex::default(),
            tasks: Vec::new(),
            directory,
        };
        world.start_node();
        world
            .tasks
            .push(tokio::spawn(server.serve(std::future::pending())));
        let control = Arc::clone(&world.control);
        eventually("the node is watched", async || control.view.is_connected()).await;
        world
    }

    /// Where the database is.
    pub(crate) fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    pub(crate) fn start_node(&self) {
        let listener = socket::listen(&self.socket).unwrap();
        let node = Arc::clone(&self.node);
        let task = tokio::spawn(server::serve(listener, node, std::future::pending()));
        *self.node_task.lock().unwrap() = Some(task);
    }

    /// Ends the node's server as a crash does. What it serves stays.
    pub(crate) async fn stop_node(&self) {
        let task = self.node_task.lock().unwrap().take().unwrap();
        task.abort();
        let _ = task.await;
        std::fs::remove_file(&self.socket).unwrap();
        let control = Arc::clone(&self.control);
        eventually("the watch broke", async || !control.view.is_connected()).await;
    }

    /// A node that takes calls and says nothing, until this is dropped.
    pub(crate) fn hang_node(&self) -> std::os::unix::net::UnixListener {
        std::os::unix::net::UnixListener::bind(&self.socket).unwrap()
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header("authorization", format!("Bearer {}", self.key))
    }

    pub(crate) async fn open(&self, request: Request<Body>) -> Response<hyper::body::Incoming> {
        tokio::time::timeout(Duration::from_secs(30), self.http.request(request))
            .await
            .expect("an answer within 30 s")
            .unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.open(request).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        assert!(parts.headers.contains_key("x-request-id"));
        Answer {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path).body(Body::empty()).unwrap())
            .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(
            self.request(Method::DELETE, path)
                .body(Body::empty())
                .unwrap(),
        )
        .await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(self.post_request(path, &body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.ask(&self.key, Method::PUT, path, body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.ask(&self.key, Method::PATCH, path, body).await
    }

    /// Asks with any key.
    pub(crate) async fn ask(&self, key: &str, method: Method, path: &str, body: Value) -> Answer {
        self.ask_with(key, method, path, body, &[]).await
    }

    pub(crate) async fn ask_with(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: Value,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_string())).unwrap();
        self.send(request).await
    }

    /// Posts with an idempotency key.
    pub(crate) async fn post_keyed(&self, path: &str, key: &str, body: Value) -> Answer {
        let mut request = self.post_request(path, &body);
        let key = key.parse().unwrap();
        request.headers_mut().insert("idempotency-key", key);
        self.send(request).await
    }

    pub(crate) fn post_request(&self, path: &str, body: &Value) -> Request<Body> {
        self.request(Method::POST, path)
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap()
    }

    /// Makes a sandbox and answers its id.
    pub(crate) async fn create(&self) -> String {
        let answer = self.post("/v1/sandboxes", serde_json::json!({})).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.tasks.drain(..).for_each(|task| task.abort());
        if let Some(task) = self.node_task.lock().unwrap().take() {
            task.abort();
        }
    }
}

fn signed_in_by(settings: SignInSettings) -> SignIn {
    let authority = None;
    let config = SignInConfig {
        settings,
        authority,
    };
    SignIn::new(config).unwrap()
}

pub(crate) async fn add_key(store: &Store, project: &str) -> String {
    let key = PresentedKey::generate().unwrap();
    let project = ProjectId::parse(project).unwrap();
    store.ensure_project(&project, 1).await.unwrap();
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
    store.ensure_key(&row).await.unwrap();
    key.reveal().to_owned()
}

/// Waits for a condition, with a bound.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..500 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}
