//! What sandboxes may reach.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{
    AllowNetwork, Network, NetworkDefault, NetworkPresetList, NetworkSuggestion, NetworkWish,
};

use crate::control::Control;
use crate::http::answer::{
    ChangeRefusals, DefaultRefusals, FindRefusals, NodeFindRefusals, ReadRefusals,
};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::SandboxParameter;
use crate::network::set::{self, NetworkChange};
use crate::network::{presets, read, spec};
use crate::time::now_ms;

/// What the sandbox may reach, and whether that is in force.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/network", operation_id = "get_network", tag = "network", params(SandboxParameter),
    responses((status = 200, body = Network), FindRefusals))]
pub(crate) async fn get(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
) -> Result<Json<Network>, ApiError> {
    let network = read::get(&control, &caller.project, &id).await?;
    Ok(Json(network))
}

/// Replaces what the sandbox may reach; open connections that it no longer may are cut. A narrower
/// policy that the host has not confirmed yet is returned with `enforced: false` and sent until it
/// has; a wider one that it does not confirm is refused, and the old one stays.
#[utoipa::path(put, path = "/v1/sandboxes/{id}/network", operation_id = "set_network", tag = "network", params(SandboxParameter),
    request_body = NetworkWish,
    responses((status = 200, body = Network), ChangeRefusals))]
pub(crate) async fn set(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<NetworkWish>,
) -> Result<Json<Network>, ApiError> {
    let internal = control.internal_networks.of(&caller.project);
    let change = NetworkChange::Replace(spec::of_network(body, &internal)?);
    let network = set::change(control, caller.project, id, change).await?;
    Ok(Json(network))
}

/// Adds rules. A sandbox that may reach nothing gets an allowlist.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/network/allow", operation_id = "allow_network", tag = "network", params(SandboxParameter),
    request_body = AllowNetwork,
    responses((status = 200, body = Network), ChangeRefusals))]
pub(crate) async fn allow(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<AllowNetwork>,
) -> Result<Json<Network>, ApiError> {
    let change = NetworkChange::Allow(body.rules);
    let network = set::change(control, caller.project, id, change).await?;
    Ok(Json(network))
}

/// Drafts the smallest allowlist for the connections that were let through so far. Nothing is
/// changed.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/network/suggest", operation_id = "suggest_network", tag = "network", params(SandboxParameter),
    responses((status = 200, body = NetworkSuggestion), NodeFindRefusals))]
pub(crate) async fn suggest(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
) -> Result<Json<NetworkSuggestion>, ApiError> {
    let suggestion = read::suggestion(&control, &caller.project, &id).await?;
    Ok(Json(suggestion))
}

/// What a new sandbox may reach when its create does not say.
#[utoipa::path(get, path = "/v1/network-default", operation_id = "get_network_default", tag = "network",
    responses((status = 200, body = NetworkDefault), ReadRefusals))]
pub(crate) async fn default(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<NetworkDefault>, ApiError> {
    let policy = read::default(&control, &caller.project).await?;
    Ok(Json(read::present_default(&policy)))
}

/// Replaces what a new sandbox may reach when its create does not say. Sandboxes that exist stay
/// as they are.
#[utoipa::path(put, path = "/v1/network-default", operation_id = "set_network_default", tag = "network",
    request_body = NetworkWish,
    responses((status = 200, body = NetworkDefault), DefaultRefusals))]
pub(crate) async fn set_default(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    JsonObject(body): JsonObject<NetworkWish>,
) -> Result<Json<NetworkDefault>, ApiError> {
    let internal = control.internal_networks.of(&caller.project);
    let policy = spec::of_network(body, &internal)?;
    let written = control
        .store
        .set_network_default(&caller.project, &policy, now_ms());
    written.await?;
    Ok(Json(read::present_default(&policy)))
}

/// Lists of hosts that a rule can name as `preset:NAME`.
#[utoipa::path(get, path = "/v1/network-presets", operation_id = "list_network_presets", tag = "network",
    responses((status = 200, body = NetworkPresetList), ReadRefusals))]
pub(crate) async fn presets() -> Json<NetworkPresetList> {
    let items = presets::present();
    Json(NetworkPresetList { items })
}
