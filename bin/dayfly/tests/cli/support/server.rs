//! A server that plays what the names of templates and programs tell it to.
//!
//! Templates: `bakes` is refused three times with `template_baking`, `full` always with
//! `no_capacity`, `slow` waits for [`FakeServer::release`], `broken` fails, `tools` was not baked,
//! `scope` is not for this key, `none` does not exist. Programs: see
//! `guest.rs`. Snapshots, forks and volumes: see `state.rs`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, extract::DefaultBodyLimit};
use dayfly_api::{
    Advice, BakeTemplate, ChangeLifecycle, CreateSandbox, ErrorBody, ForkSandbox, Health, Hint,
    NetworkMode, NetworkWish, NodeView, OnTimeout, PoolView, PromiseClass, RollbackSandbox,
    Sandbox, SandboxList, Snapshot, Template, TemplateRun, TemplateState, TemplateVariant, Volume,
    WakeSandbox,
};
use tokio::sync::{Notify, watch};

use super::guest::{attach_socket, exec_socket, read_file, stat, write_file};
use super::within;

#[derive(Default)]
pub(crate) struct World {
    pub(crate) sandboxes: BTreeMap<String, Sandbox>,
    pub(crate) files: BTreeMap<String, Bytes>,
    pub(crate) file_requests: Vec<serde_json::Value>,
    pub(crate) deleted: Vec<String>,
    pub(crate) creates: Vec<CreateSandbox>,
    pub(crate) sizes_baked: Vec<BakeTemplate>,
    pub(crate) idempotency_keys: Vec<String>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) volumes: BTreeMap<String, Volume>,
    pub(crate) forks: Vec<ForkSandbox>,
    /// Commands of shells, each with its sandbox.
    pub(crate) shells: Vec<(String, String)>,
    pub(crate) lifecycle_changes: Vec<ChangeLifecycle>,
    pub(crate) wakes: Vec<WakeSandbox>,
    pub(crate) rollbacks: Vec<RollbackSandbox>,
    pub(crate) networks: Vec<NetworkWish>,
    pub(crate) signals: Vec<i32>,
    pub(crate) audit: Vec<serde_json::Value>,
    /// Method, path and query of each request that had the key.
    pub(crate) requests: Vec<String>,
    pub(crate) holds_streams: bool,
    pub(crate) hangs_on_delete: bool,
    pub(crate) fails_on_delete: bool,
    bakes: u8,
}

pub(super) struct Shared {
    pub(super) world: Mutex<World>,
    /// The steps that have begun, such as `create` or `exec`.
    steps: watch::Sender<Vec<String>>,
    release: Notify,
}

pub(crate) struct FakeServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeServer {
    pub(crate) const KEY: &str = "df_test_key";

    /// A server that has these sandboxes.
    pub(crate) async fn with(ids: &[&str]) -> Self {
        let server = Self::start().await;
        for id in ids {
            server.add(id);
        }
        server
    }

    pub(crate) async fn start() -> Self {
        let shared = Arc::new(Shared {
            world: Mutex::default(),
            steps: watch::Sender::default(),
            release: Notify::new(),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let router = router(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the server runs");
        });
        Self {
            address,
            shared,
            task,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.shared
            .world
            .lock()
            .expect("no test panics with the lock")
    }

    pub(crate) fn add(&self, id: &str) {
        self.world()
            .sandboxes
            .insert(id.to_owned(), sandbox(id, "base"));
    }

    /// Lets a `slow` create go on.
    pub(crate) fn release(&self) {
        self.shared.release.notify_one();
    }

    /// Waits until `step` has begun.
    pub(crate) async fn reached(&self, step: &str) {
        let mut steps = self.shared.steps.subscribe();
        let reached = steps.wait_for(|steps| steps.iter().any(|known| known == step));
        within(step, reached).await.expect("the server runs");
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/sandboxes", post(create).get(list))
        .route("/v1/sandboxes/{id}", get(read).delete(delete))
        .route("/v1/sandboxes/{id}/exec/socket", get(exec_socket))
        .route(
            "/v1/sandboxes/{id}/processes/{exec}/socket",
            get(attach_socket),
        )
        .route("/v1/sandboxes/{id}/fs", get(read_file).put(write_file))
        .route("/v1/sandboxes/{id}/fs/stat", get(stat))
        .route("/v1/templates", get(templates))
        .route("/v1/templates/{name}", get(template_now))
        .route("/v1/templates/{name}/bake", post(bake_template))
        .route("/v1/node", get(node))
        .merge(super::state::routes())
        .merge(super::files::routes())
        .merge(super::network::routes())
        .merge(super::ports::routes())
        .merge(super::processes::routes())
        .merge(super::tenancy::routes())
        .layer(middleware::from_fn_with_state(
            Arc::clone(&shared),
            super::streams::hold,
        ))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&shared),
            note_request,
        ))
        .layer(middleware::from_fn(authenticate))
        .route("/health", get(health))
        .layer(DefaultBodyLimit::disable())
        .with_state(shared)
}

pub(super) fn refuse(status: u16, code: &str, error: &str, hint: Option<&str>) -> Response {
    refuse_at(status, code, error, as_told(hint), None)
}

/// As a server that sends no codes of hints.
fn as_told(hint: Option<&str>) -> Advice {
    Advice {
        hint: hint.map(str::to_owned),
        ..Advice::default()
    }
}

pub(super) fn refuse_at(
    status: u16,
    code: &str,
    error: &str,
    advice: Advice,
    percent: Option<u8>,
) -> Response {
    let body = ErrorBody {
        error: error.to_owned(),
        code: code.to_owned(),
        advice,
        request_id: "req-test".to_owned(),
        percent,
    };
    let status = StatusCode::from_u16(status).expect("a status");
    (status, [("retry-after", "0")], Json(body)).into_response()
}

async fn note_request(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    note(&shared, &request);
    next.run(request).await
}

fn note(shared: &Shared, request: &Request) {
    let asked = format!("{} {}", request.method(), request.uri());
    let mut world = shared.world.lock().expect("no test panics with the lock");
    world.requests.push(asked);
}

async fn authenticate(request: Request, next: Next) -> Response {
    let given = request
        .headers()
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    if given == Some(&format!("Bearer {}", FakeServer::KEY)) {
        let mut response = next.run(request).await;
        let id = HeaderValue::from_static("req-test");
        response.headers_mut().insert("x-request-id", id);
        return response;
    }
    refuse(401, "unauthorized", "key is not known", None)
}

pub(super) fn sandbox(id: &str, template: &str) -> Sandbox {
    Sandbox {
        id: id.to_owned(),
        project: None,
        name: None,
        template: template.to_owned(),
        status: "running".to_owned(),
        reason: None,
        cpu: 1,
        memory_mb: 256,
        variant: None,
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        env_names: Vec::new(),
        metadata: BTreeMap::from([("note".to_owned(), "a\u{1b}[2Jb".to_owned())]),
        persistent: false,
        ttl_seconds: Some(3600),
        expires_at: None,
        idle_seconds: None,
        on_timeout: OnTimeout::Delete,
        disk_gb: 4.0,
        cpu_limit: None,
        from_snapshot: None,
        volumes: Vec::new(),
        network_mode: NetworkMode::Deny,
        boot_mode: "restore".to_owned(),
        boot_ms: Some(5),
        boot_stages_us: BTreeMap::new(),
        condition: None,
        class: PromiseClass::Shared,
        sleep_reason: None,
        isolation: "emulated".to_owned(),
    }
}

pub(super) fn begin(shared: &Shared, step: &str) {
    shared
        .steps
        .send_modify(|steps| steps.push(step.to_owned()));
}

async fn create(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(request): Json<CreateSandbox>,
) -> Response {
    begin(&shared, "create");
    let template = request
        .template
        .clone()
        .unwrap_or_else(|| "base".to_owned());
    if template == "slow" {
        shared.release.notified().await;
    }
    let mut world = shared.world.lock().expect("no test panics with the lock");
    let key = headers
        .get("idempotency-key")
        .and_then(|value| value.to_str().ok());
    world.idempotency_keys.extend(key.map(str::to_owned));
    let name = request.name.clone();
    let env_names = request.env.iter().flatten().map(|(name, _)| name.clone());
    let env_names = env_names.collect();
    world.creates.push(request);
    match template.as_str() {
        "bakes" if world.bakes < 3 => {
            world.bakes += 1;
            let percent = Some(world.bakes * 25);
            let (code, text) = ("template_baking", "template is baking");
            return refuse_at(503, code, text, Advice::default(), percent);
        }
        "full" => return refuse(503, "no_capacity", "no room", None),
        "broken" => return refuse(500, "internal", "a fault", Some("tell the operator")),
        "none" => return refuse(404, "not_found", "there is no template none", None),
        "tools" => {
            let template = "tools".to_owned();
            let advice = Hint::TemplateFailed { template }.into();
            let text = "template tools could not be baked";
            return refuse_at(503, "template_failed", text, advice, None);
        }
        "scope" => {
            let text = "this key does not have the scope `create`";
            let advice = Hint::KeyPermissions.into();
            return refuse_at(403, "forbidden", text, advice, None);
        }
        _ => {}
    }
    let id = format!("sb-local-{:026}", world.creates.len());
    let sandbox = Sandbox {
        name,
        env_names,
        ..sandbox(&id, &template)
    };
    world.sandboxes.insert(id, sandbox.clone());
    (StatusCode::CREATED, Json(sandbox)).into_response()
}

async fn list(State(shared): State<Arc<Shared>>) -> Json<SandboxList> {
    let world = shared.world.lock().expect("no test panics with the lock");
    Json(SandboxList {
        items: world.sandboxes.values().cloned().collect(),
        next_cursor: None,
    })
}

async fn read(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    let world = shared.world.lock().expect("no test panics with the lock");
    match world.sandboxes.get(&id) {
        Some(sandbox) => Json(sandbox).into_response(),
        None => refuse(404, "not_found", "no such sandbox", None),
    }
}

async fn delete(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    begin(&shared, "delete");
    let hangs = shared
        .world
        .lock()
        .expect("no test panics with the lock")
        .hangs_on_delete;
    if hangs {
        shared.release.notified().await;
    }
    let mut world = shared.world.lock().expect("no test panics with the lock");
    if world.fails_on_delete {
        return refuse(500, "internal", "cannot delete", None);
    }
    world.sandboxes.remove(&id);
    world.deleted.push(id);
    StatusCode::NO_CONTENT.into_response()
}

async fn templates() -> Json<Vec<Template>> {
    let failed = Template {
        detail: Some("no space left".to_owned()),
        ..template("tools", TemplateState::Failed)
    };
    Json(vec![template("base", TemplateState::Baking), failed])
}

/// One that was asked for is there at the next look.
async fn template_now(Path(name): Path<String>) -> Response {
    if name == "none" {
        return refuse(404, "not_found", "there is no template none", None);
    }
    let is_broken = name == "broken";
    let state = if is_broken {
        TemplateState::Failed
    } else {
        TemplateState::Ready
    };
    let detail = is_broken.then(|| "no space left".to_owned());
    Json(Template {
        detail,
        ..template(&name, state)
    })
    .into_response()
}

async fn bake_template(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    body: Option<Json<BakeTemplate>>,
) -> (StatusCode, Json<Template>) {
    let Some(Json(size)) = body else {
        let asked = template(&name, TemplateState::Baking);
        return (StatusCode::ACCEPTED, Json(asked));
    };
    let mut asked = template(&name, TemplateState::Ready);
    let mut world = shared.world.lock().expect("no test panics with the lock");
    world.sizes_baked.push(size);
    let variants = world.sizes_baked.iter().map(|size| TemplateVariant {
        cpu: size.cpu.map_or(1, |cpu| u32::try_from(cpu).unwrap()),
        memory_mb: size.memory_mb.unwrap_or(256),
        state: TemplateState::Ready,
        usable: true,
        percent: 100,
        detail: None,
        size_bytes: 3 << 20,
        baked_at: None,
        bake_ms: Some(2345),
    });
    asked.variants = variants.collect();
    (StatusCode::ACCEPTED, Json(asked))
}

fn template(name: &str, state: TemplateState) -> Template {
    Template {
        name: name.to_owned(),
        description: "plain".to_owned(),
        alias_of: None,
        usable: state == TemplateState::Ready,
        state,
        percent: 40,
        detail: None,
        cpu: 1,
        memory_mb: 256,
        disk_mb: 1024,
        size_bytes: 1 << 20,
        run: TemplateRun::Shell,
        contexts: Vec::new(),
        is_global: true,
        baked_at: None,
        variants: Vec::new(),
    }
}

async fn node() -> Json<NodeView> {
    Json(NodeView {
        node: "node-1".to_owned(),
        isolation: "emulated".to_owned(),
        engine: "qemu".to_owned(),
        engine_version: "8.2".to_owned(),
        accelerator: "tcg".to_owned(),
        sandboxes: 1,
        memory_total_mb: 8192,
        memory_committed_mb: 512,
        memory_reserve_mb: 1024,
        memory_share: 8,
        disk_share: 16,
        memory_available_mb: Some(9000),
        pressure: None,
        put_to_sleep: 2,
        disk_available_mb: 10_000,
        disk_committed_mb: 100,
        disk_reserve_mb: 1000,
        parked_slots: 2,
        parked_slots_target: 4,
        parked_engines: vec![PoolView {
            template: "base".to_owned(),
            parked: 1,
            target: 2,
        }],
    })
}

async fn health() -> Json<Health> {
    Json(Health {
        status: "ok".to_owned(),
        version: "9.9.9".to_owned(),
        conditions: Vec::new(),
    })
}
