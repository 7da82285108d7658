//! Templates.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use dayfly_api::Template;
use dayfly_node_api::NodeCalls;

use crate::control::Control;
use crate::http::answer::{NodeFindRefusals, NodeRefusals, ReadRefusals};
use crate::http::auth::Caller;
use crate::http::error::ApiError;
use crate::http::parameter::TemplateParameter;
use crate::template::read::{self, BakeRight};
use crate::tenancy::scope::Scope;

/// All templates. A bare array, because the published clients read one.
#[utoipa::path(get, path = "/v1/templates", operation_id = "list_templates", tag = "templates",
    responses((status = 200, body = Vec<Template>), NodeRefusals))]
pub(crate) async fn list(
    State(control): State<Arc<Control>>,
) -> Result<Json<Vec<Template>>, ApiError> {
    let reports = control.node.templates().await?;
    Ok(Json(reports.into_iter().map(read::present).collect()))
}

/// Builds of templates out of images or archives, of which there are none: templates are baked from
/// recipes. The published clients ask for the list.
#[utoipa::path(get, path = "/v1/templates/builds", operation_id = "list_builds", tag = "templates",
    responses((status = 200, body = Vec<Object>), ReadRefusals))]
pub(crate) async fn builds() -> Json<[(); 0]> {
    Json([])
}

/// One template.
#[utoipa::path(get, path = "/v1/templates/{name}", operation_id = "get_template", tag = "templates", params(TemplateParameter),
    responses((status = 200, body = Template), NodeFindRefusals))]
pub(crate) async fn get(
    State(control): State<Arc<Control>>,
    TemplateParameter { name }: TemplateParameter,
) -> Result<Json<Template>, ApiError> {
    Ok(Json(read::present(
        read::find(control.node.as_ref(), &name).await?,
    )))
}

/// Has a template baked, unless it can be used, and does not wait for it. May be repeated; a bake
/// that failed is tried again. Recipes are read anew. With an operator's key a template whose recipe
/// is another by now is baked anew; sandboxes are made from the bake before it meanwhile.
#[utoipa::path(post, path = "/v1/templates/{name}/bake", operation_id = "bake_template", tag = "templates", params(TemplateParameter),
    responses((status = 202, body = Template), NodeFindRefusals))]
pub(crate) async fn bake(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    TemplateParameter { name }: TemplateParameter,
) -> Result<(StatusCode, Json<Template>), ApiError> {
    let right = if caller.reach.scopes.has(Scope::Operator) {
        BakeRight::Anew
    } else {
        BakeRight::Missing
    };
    let report = read::bake(control.node.as_ref(), &name, right).await?;
    Ok((StatusCode::ACCEPTED, Json(read::present(report))))
}
