//! Templates.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use dayfly_api::{BakeTemplate, Template};
use dayfly_node_api::NodeCalls;
use dayfly_types::ordered_template::is_ordered_name;

use crate::control::Control;
use crate::http::answer::{NodeFindRefusals, NodeRefusals};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::TemplateParameter;
use crate::input::quantity;
use crate::sandbox::size;
use crate::store::OrderKind;
use crate::template::read::{self, BakeRight, TemplateError};
use crate::template::{variant, versions};
use crate::tenancy::scope::Scope;

/// The server's templates, and those of the project by their newest version. A bare array, because the
/// published clients read one.
#[utoipa::path(get, path = "/v1/templates", operation_id = "list_templates", tag = "templates",
    responses((status = 200, body = Vec<Template>), NodeRefusals))]
pub(crate) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Vec<Template>>, ApiError> {
    let reports = control.node.templates().await?;
    let of_all = reports
        .iter()
        .filter(|report| !is_ordered_name(&report.name));
    let mut shown: Vec<Template> = of_all.cloned().map(read::present).collect();
    let rows = control.store.orders(&caller.project, OrderKind::Version);
    let rows = rows.await?;
    shown.extend(versions::newest(&rows, &reports));
    Ok(Json(shown))
}

/// One template.
#[utoipa::path(get, path = "/v1/templates/{name}", operation_id = "get_template", tag = "templates", params(TemplateParameter),
    responses((status = 200, body = Template), NodeFindRefusals))]
pub(crate) async fn get(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    TemplateParameter { name }: TemplateParameter,
) -> Result<Json<Template>, ApiError> {
    match read::find(control.node.as_ref(), &name).await {
        Ok(report) => Ok(Json(read::present(report))),
        Err(unknown @ TemplateError::Unknown { .. }) => {
            let (project, name) = (&caller.project, name.as_str());
            let rows = control
                .store
                .orders_named(project, OrderKind::Version, name);
            let rows = rows.await?;
            let reports = control.node.templates().await?;
            let newest = versions::newest(&rows, &reports).into_iter().next();
            newest.map(Json).ok_or_else(|| unknown.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Has a template baked, unless it can be used, and does not wait for it. May be repeated; a bake
/// that failed is tried again. Recipes are read anew. With an operator's key a template whose recipe
/// is another by now is baked anew; sandboxes are made from the bake before it meanwhile.
///
/// With a size in the body the template's variant of that size is baked, as a create with that size
/// would do it; `variants` of the response has it. A template has at most 8, of which a project can
/// cause 4 of all templates; those of an operator's key count for no project.
#[utoipa::path(post, path = "/v1/templates/{name}/bake", operation_id = "bake_template", tag = "templates", params(TemplateParameter),
    request_body(content = Option<BakeTemplate>),
    responses((status = 202, body = Template), NodeFindRefusals))]
pub(crate) async fn bake(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    TemplateParameter { name }: TemplateParameter,
    JsonObject(body): JsonObject<BakeTemplate>,
) -> Result<(StatusCode, Json<Template>), ApiError> {
    let right = if caller.reach.scopes.has(Scope::Operator) {
        BakeRight::Anew
    } else {
        BakeRight::Missing
    };
    let node = control.node.as_ref();
    let memory = body.memory_mb.map(quantity::memory_mb).transpose()?;
    let vcpus = body.cpu.map(quantity::vcpus).transpose()?;
    let size = if memory.is_some() || vcpus.is_some() {
        size::variant(&read::find(node, &name).await?, memory, vcpus)?
    } else {
        None
    };
    let report = match size {
        Some(size) => {
            variant::bake(node, &name, size, right, &caller.project).await?;
            read::find(node, &name).await?
        }
        None => read::bake(node, &name, right).await?,
    };
    Ok((StatusCode::ACCEPTED, Json(read::present(report))))
}
