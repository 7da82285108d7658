//! The routes, and the document that describes them. Each route is registered once for both.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use dayfly_node_api::unread::drain_unread;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, InfoBuilder, OpenApi, OpenApiBuilder, RefOr, Required};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{ReadRefusals, envelope_schema, refusal};
use super::error::ApiError;
use super::{
    audit, auth, contexts, envelope, events, exec, exec_socket, files, files_edit, files_tree,
    files_watch, forks, known_names, logs, network, network_log, port_gateway, ports, processes,
    projects, run, sandboxes, snapshots, states, system, templates, tokens, volumes,
};
use crate::control::Control;

const SCHEME: &str = "key";
/// Where a request without options, or an empty file, has no body.
const BODILESS: [&str; 11] = [
    "/v1/me/tokens",
    "/v1/projects/{project}",
    "/v1/projects/{project}/tokens",
    "/v1/sandboxes",
    "/v1/sandboxes/{id}/fs",
    "/v1/sandboxes/{id}/fs/tar",
    "/v1/sandboxes/{id}/fork",
    "/v1/sandboxes/{id}/lifecycle",
    "/v1/sandboxes/{id}/ports/{port}/links",
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
    let (router, _) = described().split_for_parts();
    router
        .route_layer(from_fn(known_names::refuse_unknown_query))
        .layer(from_fn_with_state(Arc::clone(&control), auth::require_key))
        .layer(from_fn_with_state(Arc::clone(&control), cap_requests))
        .layer(from_fn_with_state(
            Arc::clone(&control),
            port_gateway::divert,
        ))
        .layer(from_fn(drain_unread))
        .layer(from_fn(envelope::wrap))
        .with_state(control)
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
        .routes(routes!(system::me))
        .routes(routes!(system::node))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(projects::list, projects::create))
        .routes(routes!(projects::get, projects::change))
        .routes(routes!(tokens::create_for_project))
        .routes(routes!(projects::usage))
        .routes(routes!(projects::loads))
        .routes(routes!(audit::read))
        .routes(routes!(events::follow))
        .routes(routes!(document))
        .routes(routes!(templates::list))
        .routes(routes!(templates::get))
        .routes(routes!(templates::builds))
        .routes(routes!(templates::bake))
        .routes(routes!(sandboxes::create, sandboxes::list))
        .routes(routes!(sandboxes::get, sandboxes::delete))
        .routes(routes!(states::pause))
        .routes(routes!(states::resume))
        .routes(routes!(states::hibernate))
        .routes(routes!(states::wake))
        .routes(routes!(states::rollback))
        .routes(routes!(states::lifecycle, states::set_lifecycle))
        .routes(routes!(snapshots::take))
        .routes(routes!(forks::fork))
        .routes(routes!(forks::fork_tree))
        .routes(routes!(forks::promote))
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
        .routes(routes!(exec_socket::start))
        .routes(routes!(logs::read))
        .routes(routes!(processes::list))
        .routes(routes!(processes::get, processes::delete))
        .routes(routes!(processes::attach))
        .routes(routes!(processes::output))
        .routes(routes!(processes::stdin))
        .routes(routes!(processes::signal))
        .routes(routes!(processes::resize))
        .routes(routes!(exec_socket::attach))
        .routes(routes!(contexts::create, contexts::list))
        .routes(routes!(contexts::delete))
        .routes(routes!(contexts::interrupt))
        .routes(routes!(contexts::restart))
        .routes(routes!(contexts::run))
        .routes(routes!(contexts::stream))
        .routes(routes!(run::run))
        .routes(routes!(network::get, network::set))
        .routes(routes!(network::allow))
        .routes(routes!(network_log::read))
        .routes(routes!(network::suggest))
        .routes(routes!(network::default, network::set_default))
        .routes(routes!(network::presets))
        .routes(routes!(ports::list))
        .routes(routes!(ports::create_link, ports::list_links))
        .routes(routes!(ports::revoke_link))
        .routes(routes!(ports::list_all_links))
        .routes(routes!(files::read, files::write, files_edit::remove))
        .routes(routes!(files::list))
        .routes(routes!(files::stat))
        .routes(routes!(files_edit::make_directory))
        .routes(routes!(files_edit::move_file))
        .routes(routes!(files_edit::change_mode))
        .routes(routes!(files_edit::list_changes))
        .routes(routes!(files_watch::watch))
        .routes(routes!(files_tree::download_tree, files_tree::upload_tree))
}

/// What stands around the routes.
fn frame() -> OpenApi {
    let mut components = Components::new();
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme(SCHEME, SecurityScheme::Http(scheme));
    components.schemas.extend([envelope_schema()]);
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

/// Middleware: refuses what is over the cap, before any work. Health is always answered.
async fn cap_requests(
    State(control): State<Arc<Control>>,
    request: Request,
    next: Next,
) -> Response {
    if auth::is_health(&request) {
        return next.run(request).await;
    }
    match control.limits.request() {
        Ok(_place) => next.run(request).await,
        Err(error) => ApiError::from(error).into_response(),
    }
}
