//! Templates.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use dayfly_api::Template;

use super::answer::{NodeFindRefusals, NodeRefusals};
use super::error::ApiError;
use super::parameter::{TemplateParameter, TemplateParameters};
use crate::app::template;
use crate::control::Control;

/// All templates. A bare array, because the published clients read one.
#[utoipa::path(get, path = "/v1/templates", operation_id = "list_templates", tag = "templates",
    responses((status = 200, body = Vec<Template>), NodeRefusals))]
pub(super) async fn list(
    State(control): State<Arc<Control>>,
) -> Result<Json<Vec<Template>>, ApiError> {
    let reports = control.node.templates().await?;
    Ok(Json(reports.into_iter().map(template::present).collect()))
}

/// One template.
#[utoipa::path(get, path = "/v1/templates/{name}", operation_id = "get_template", tag = "templates", params(TemplateParameters),
    responses((status = 200, body = Template), NodeFindRefusals))]
pub(super) async fn get(
    State(control): State<Arc<Control>>,
    TemplateParameter(name): TemplateParameter,
) -> Result<Json<Template>, ApiError> {
    Ok(Json(template::present(
        template::find(control.node.as_ref(), &name).await?,
    )))
}
