//! The routes, and the document that describes them. Each route is registered once for both.

use std::sync::{Arc, LazyLock};

use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Extension, Router};
use dayfly_node_api::unread::drain_unread;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, InfoBuilder, OpenApi, OpenApiBuilder, RefOr, Required};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{ReadRefusals, envelope_schemas, refusal};
use super::error::ApiError;
use super::mcp_http::{self, McpRoute, McpService};
use super::{access_log, audit_read, auth, envelope, export_http, known_names, system};
use crate::build::{TemplateBuilder, follow_http, http as builds};
use crate::code::http as contexts;
use crate::control::Control;
use crate::exec::{http as exec, logs_http, processes_http, run_http, socket_http};
use crate::files::{edit_http, http as files, links_http, tree_http, watch_http};
use crate::network::{http as network, log_http};
use crate::ports::{gateway_http, http as ports};
use crate::sandbox::{events_http, forks_http, http as sandboxes, samples_http, states_http};
use crate::snapshot::http as snapshots;
use crate::template::http as templates;
use crate::template::versions_http;
use crate::tenancy::{hours_http, projects_http, sign_in_http, tokens_http};
use crate::volume::http as volumes;

const SCHEME: &str = "key";
/// Where a request without options, or an empty file, has no body.
const BODILESS: [&str; 12] = [
    "/v1/me/tokens",
    "/v1/projects/{project}",
    "/v1/projects/{project}/tokens",
    "/v1/sandboxes",
    "/v1/sandboxes/{id}/fs",
    "/v1/sandboxes/{id}/fs/tar",
    "/v1/sandboxes/{id}/fork",
    "/v1/sandboxes/{id}/lifecycle",
    "/v1/sandboxes/{id}/ports/{port}/links",
    "/v1/sandboxes/{id}/ports/{port}/wait",
    "/v1/sandboxes/{id}/promote",
    "/v1/sandboxes/{id}/snapshots",
];

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    openapi()
        .to_pretty_json()
        .unwrap_or_else(|_| "{}".to_owned())
});

/// The public API over one control plane.
pub fn router(control: Arc<Control>) -> Router {
    let routes = Router::new().fallback_service(routed(&control));
    guarded(routes, control)
}

/// Makes what serves `/mcp`, of the API that it is to use.
pub type MakeMcp = Box<dyn FnOnce(Router) -> Arc<dyn McpService> + Send>;
/// Makes what runs builds of templates, of the API that it is to use.
pub type MakeBuilder = Box<dyn FnOnce(Router) -> Arc<dyn TemplateBuilder> + Send>;

/// Clients of this API that are made with it and serve parts of it, behind the same doors.
#[derive(Default)]
pub struct InProcess {
    pub make_mcp: Option<MakeMcp>,
    pub make_builder: Option<MakeBuilder>,
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}

/// The same, with what is served by clients of it.
pub fn router_with(control: Arc<Control>, clients: InProcess) -> Router {
    let mut api = routed(&control);
    if let Some(make_builder) = clients.make_builder {
        let builder = make_builder(router(Arc::clone(&control)));
        api = api.layer(Extension(builds::RunsBuilds(builder)));
    }
    let routes = match clients.make_mcp {
        None => Router::new(),
        Some(make_mcp) => Router::new()
            .route(mcp_http::PATH, any(mcp_http::serve))
            .route_layer(from_fn(access_log::note_route))
            .with_state(McpRoute {
                control: Arc::clone(&control),
                service: make_mcp(router(Arc::clone(&control))),
            }),
    };
    guarded(routes.fallback_service(api), control)
}

fn routed(control: &Arc<Control>) -> Router {
    let (router, _) = described().split_for_parts();
    router
        .route_layer(from_fn(known_names::refuse_unknown_query))
        .route_layer(from_fn(access_log::note_route))
        .with_state(Arc::clone(control))
}

/// Around the routing and not behind it: a name in the address becomes an id on the way.
fn guarded(routes: Router, control: Arc<Control>) -> Router {
    routes
        .layer(from_fn_with_state(Arc::clone(&control), auth::require_key))
        .layer(from_fn_with_state(Arc::clone(&control), cap_requests))
        .layer(from_fn_with_state(
            Arc::clone(&control),
            gateway_http::divert,
        ))
        .layer(from_fn(drain_unread))
        .layer(from_fn_with_state(control, envelope::wrap))
}

/// The document of the public API.
#[must_use]
pub fn openapi() -> OpenApi {
    let mut document = described().into_openapi();
    for path in BODILESS {
        let Some(item) = document.paths.paths.get_mut(path) else {
            continue;
        };
        let operations = [&mut item.post, &mut item.put, &mut item.patch];
        for operation in operations.into_iter().flatten() {
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                body.required = Some(Required::False);
            }
        }
    }
    for item in document.paths.paths.values_mut() {
        let changes = [
            &mut item.post,
            &mut item.put,
            &mut item.patch,
            &mut item.delete,
        ];
        for operation in changes.into_iter().flatten() {
            // A parameter that nobody knows is refused everywhere.
            let answers = &mut operation.responses.responses;
            let unfit = answers.entry("400".to_owned());
            unfit.or_insert_with(|| RefOr::T(refusal(400)));
        }
    }
    document
}

fn described() -> OpenApiRouter<Arc<Control>> {
    OpenApiRouter::with_openapi(frame())
        .routes(routes!(system::health))
        .routes(routes!(system::ready))
        .routes(routes!(system::me))
        .routes(routes!(system::node))
        .routes(routes!(sign_in_http::describe, sign_in_http::sign_in))
        .routes(routes!(tokens_http::list, tokens_http::create))
        .routes(routes!(tokens_http::revoke))
        .routes(routes!(projects_http::list, projects_http::create))
        .routes(routes!(
            projects_http::get,
            projects_http::change,
            projects_http::delete
        ))
        .routes(routes!(projects_http::suspend))
        .routes(routes!(projects_http::resume))
        .routes(routes!(tokens_http::create_for_project))
        .routes(routes!(projects_http::usage))
        .routes(routes!(projects_http::loads))
        .routes(routes!(projects_http::usage_of_all))
        .routes(routes!(hours_http::read))
        .routes(routes!(audit_read::read))
        .routes(routes!(export_http::read))
        .routes(routes!(events_http::follow))
        .routes(routes!(document))
        .routes(routes!(templates::list, versions_http::create))
        .routes(routes!(templates::get, versions_http::delete))
        .routes(routes!(versions_http::ensure_image))
        .routes(routes!(versions_http::list))
        .routes(routes!(versions_http::get, versions_http::delete_version))
        .routes(routes!(versions_http::set_tag, versions_http::delete_tag))
        .routes(routes!(builds::build))
        .routes(routes!(builds::list))
        .routes(routes!(builds::get, builds::delete))
        .routes(routes!(follow_http::events))
        .routes(routes!(follow_http::logs))
        .routes(routes!(templates::bake))
        .routes(routes!(sandboxes::create, sandboxes::list))
        .routes(routes!(sandboxes::get, sandboxes::delete))
        .routes(routes!(samples_http::read))
        .routes(routes!(states_http::pause))
        .routes(routes!(states_http::resume))
        .routes(routes!(states_http::hibernate))
        .routes(routes!(states_http::wake))
        .routes(routes!(states_http::rollback))
        .routes(routes!(states_http::lifecycle, states_http::set_lifecycle))
        .routes(routes!(snapshots::take))
        .routes(routes!(forks_http::fork))
        .routes(routes!(forks_http::fork_tree))
        .routes(routes!(forks_http::promote))
        .routes(routes!(snapshots::list))
        .routes(routes!(snapshots::get, snapshots::delete))
        .routes(routes!(volumes::create, volumes::list))
        .routes(routes!(volumes::get, volumes::grow, volumes::delete))
        .merge(inside())
}

/// What is done inside a sandbox, and what it reaches.
fn inside() -> OpenApiRouter<Arc<Control>> {
    OpenApiRouter::new()
        .routes(routes!(exec::plain))
        .routes(routes!(exec::stream))
        .routes(routes!(socket_http::start))
        .routes(routes!(logs_http::read))
        .routes(routes!(processes_http::list))
        .routes(routes!(processes_http::get, processes_http::delete))
        .routes(routes!(processes_http::attach))
        .routes(routes!(processes_http::output))
        .routes(routes!(processes_http::stdin))
        .routes(routes!(processes_http::signal))
        .routes(routes!(processes_http::resize))
        .routes(routes!(socket_http::attach))
        .routes(routes!(contexts::create, contexts::list))
        .routes(routes!(contexts::delete))
        .routes(routes!(contexts::interrupt))
        .routes(routes!(contexts::restart))
        .routes(routes!(contexts::run))
        .routes(routes!(contexts::stream))
        .routes(routes!(run_http::run))
        .routes(routes!(network::get, network::set))
        .routes(routes!(network::allow))
        .routes(routes!(log_http::read))
        .routes(routes!(network::suggest))
        .routes(routes!(network::default, network::set_default))
        .routes(routes!(network::presets))
        .routes(routes!(ports::list))
        .routes(routes!(ports::wait_for))
        .routes(routes!(ports::create_link, ports::list_links))
        .routes(routes!(ports::revoke_link))
        .routes(routes!(ports::list_all_links))
        .routes(routes!(files::read, files::write, edit_http::remove))
        .routes(routes!(files::list))
        .routes(routes!(links_http::create))
        .routes(routes!(links_http::revoke))
        .routes(routes!(files::stat))
        .routes(routes!(edit_http::make_directory))
        .routes(routes!(edit_http::move_file))
        .routes(routes!(edit_http::change_mode))
        .routes(routes!(edit_http::list_changes))
        .routes(routes!(watch_http::watch))
        .routes(routes!(tree_http::download_tree, tree_http::upload_tree))
}

/// What stands around the routes.
fn frame() -> OpenApi {
    let mut components = Components::new();
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme(SCHEME, SecurityScheme::Http(scheme));
    components.schemas.extend(envelope_schemas());
    let info = InfoBuilder::new()
        .title("Dayfly")
        .version("1")
        .description(Some(
            "Disposable computers for agents: microVMs restored from snapshots.",
        ));
    OpenApiBuilder::new()
        .info(info)
        .components(Some(components))
        .security(Some([SecurityRequirement::new(
            SCHEME,
            Vec::<String>::new(),
        )]))
        .build()
}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", operation_id = "get_openapi", tag = "system",
    responses((status = 200, body = Object), ReadRefusals))]
async fn document() -> Response {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

/// Middleware: refuses what is over the cap, before any work. Health and readiness are always
/// answered.
async fn cap_requests(
    State(control): State<Arc<Control>>,
    request: Request,
    next: Next,
) -> Response {
    if auth::is_open(&request) {
        return next.run(request).await;
    }
    match control.limits.request() {
        Ok(_place) => next.run(request).await,
        Err(error) => ApiError::from(error).into_response(),
    }
}
