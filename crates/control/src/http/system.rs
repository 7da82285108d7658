//! The server about itself.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{Health, HealthCondition, Hint, Me, NodeView, PoolView};
use dayfly_node_api::{NodeCalls, NodeStatus};
use dayfly_types::ErrorCode;

use super::answer::{HealthRefusals, NodeRefusals, ReadRefusals};
use super::auth::Caller;
use super::error::{ApiError, usual_delay};
use crate::conditions::Condition;
use crate::control::Control;
use crate::{readiness, store_check};

/// Is the server there, and well? It refuses while anything is wrong: the code names the first of
/// its conditions, and the fields of `Health` stand beside the refusal's. A node that was away for
/// a moment, as over a restart, is a condition and no refusal.
#[utoipa::path(get, path = "/health", operation_id = "health", tag = "system", security(()),
    responses((status = 200, body = Health), HealthRefusals))]
pub(crate) async fn health(State(control): State<Arc<Control>>) -> Result<Json<Health>, ApiError> {
    let outage = control.node_outage();
    let lasts = |name: Condition| outage.is_some() || name != Condition::NodeUnreachable;
    let held = held(&control).await;
    let health = health_of(&held);
    match held.into_iter().find(|(name, _)| lasts(*name)) {
        None => Ok(Json(health)),
        Some((name, detail)) => Err(unwell(name, detail, health)),
    }
}

/// Can work be sent here? It refuses while anything is wrong, also for a moment, and while there
/// is no template to make a sandbox from: what a load balancer or a script that has just started
/// the server waits for. Whether there is room is for each create to find out.
#[utoipa::path(get, path = "/ready", operation_id = "ready", tag = "system", security(()),
    responses((status = 200, body = Health), HealthRefusals))]
pub(crate) async fn ready(State(control): State<Arc<Control>>) -> Result<Json<Health>, ApiError> {
    let held = held(&control).await;
    let health = health_of(&held);
    if let Some((name, detail)) = held.into_iter().next() {
        return Err(unwell(name, detail, health));
    }
    match readiness::look(&control).await {
        Ok(()) => Ok(Json(health)),
        Err(why) => Err(refusal(why.code, why.detail.to_owned(), why.remedy, health)),
    }
}

fn health_of(held: &[(Condition, String)]) -> Health {
    let conditions = held.iter().map(|(name, detail)| HealthCondition {
        name: name.as_str().to_owned(),
        detail: detail.clone(),
        remedy: name.remedy().to_owned(),
    });
    Health {
        status: if held.is_empty() { "ok" } else { "degraded" }.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        conditions: conditions.collect(),
    }
}

/// What is wrong now, and why.
pub(super) async fn held(control: &Arc<Control>) -> Vec<(Condition, String)> {
    store_check::look(control).await;
    let mut held = control.conditions.current();
    if let Some(detail) = control.node_outage() {
        // One that comes and goes may answer just now.
        held.retain(|(name, _)| *name != Condition::NodeUnreachable);
        held.push((Condition::NodeUnreachable, detail));
    }
    held
}

fn unwell(name: Condition, detail: String, health: Health) -> ApiError {
    let code = match name {
        Condition::AuditUnwritable => ErrorCode::AuditUnavailable,
        Condition::NodeUnreachable => ErrorCode::NodeUnavailable,
        Condition::StoreUnwritable | Condition::StrangeDatabase | Condition::DiskFull => {
            ErrorCode::StoreUnavailable
        }
    };
    refusal(code, detail, name.remedy(), health)
}

fn refusal(code: ErrorCode, detail: String, remedy: &str, health: Health) -> ApiError {
    let remedy = remedy.to_owned();
    let mut error = ApiError::new(code, detail).hint(Hint::HealthRemedy { remedy });
    error.retry_after = usual_delay(code);
    error.health = Some(Box::new(health));
    error
}

/// Whose key is this?
#[utoipa::path(get, path = "/v1/me", operation_id = "get_me", tag = "system",
    responses((status = 200, body = Me), ReadRefusals))]
pub(crate) async fn me(Extension(caller): Extension<Caller>) -> Json<Me> {
    Json(Me {
        project: caller.project.to_string(),
        scopes: caller.reach.scopes.words().map(str::to_owned).collect(),
        sandbox_id: caller.reach.sandbox.as_ref().map(ToString::to_string),
        key_prefix: caller.key_prefix,
    })
}

/// How is the host?
#[utoipa::path(get, path = "/v1/node", operation_id = "get_node", tag = "system",
    responses((status = 200, body = NodeView), NodeRefusals))]
pub(crate) async fn node(State(control): State<Arc<Control>>) -> Result<Json<NodeView>, ApiError> {
    Ok(Json(present(control.node.status().await?)))
}

fn present(status: NodeStatus) -> NodeView {
    let pools = status.pools.into_iter().map(|pool| PoolView {
        template: pool.template.to_string(),
        parked: pool.parked,
        target: pool.target,
    });
    NodeView {
        node: status.node.to_string(),
        isolation: status.isolation.as_str().to_owned(),
        engine: status.engine,
        engine_version: status.engine_version,
        accelerator: status.accelerator,
        sandboxes: status.sandboxes,
        memory_total_mb: status.memory_total_mib,
        memory_committed_mb: status.memory_committed_mib,
        memory_reserve_mb: status.memory_reserve_mib,
        disk_available_mb: status.disk_available_mib,
        disk_committed_mb: status.disk_committed_mib,
        disk_reserve_mb: status.disk_reserve_mib,
        parked_slots: status.parked_slots,
        parked_slots_target: status.parked_slots_target,
        parked_engines: pools.collect(),
        memory_share: status.sharing.memory,
        disk_share: status.sharing.disk,
        memory_available_mb: status.sharing.memory_available_mib,
        pressure: status.sharing.pressure,
        put_to_sleep: status.sharing.put_to_sleep,
    }
}
