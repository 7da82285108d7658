//! Templates in other sizes than their own.

use dayfly_api::TemplateVariant;
use dayfly_node_api::{
    BakeState, NodeApi, NodeCalls, TemplateReport, VariantReport, VariantRequest,
};
use dayfly_types::{ErrorCode, ProjectId, TemplateName, TemplateSize};

use super::read::{BakeRight, TemplateError, present_state, unknown};
use crate::time::rfc3339;

/// The variant, when a sandbox of the project can start from it now. One that is not baked is
/// ordered, and counts for the project.
///
/// # Errors
/// [`TemplateError`].
pub(crate) async fn find_ready(
    node: &dyn NodeApi,
    project: &ProjectId,
    template: &TemplateReport,
    size: TemplateSize,
) -> Result<VariantReport, TemplateError> {
    let name = template.name.clone();
    let known = template.variants.iter().find(|one| one.size == size);
    if let Some(usable) = known.filter(|one| one.is_usable) {
        return Ok(usable.clone());
    }
    let failed = |one: &VariantReport| matches!(one.state, BakeState::Failed { .. });
    if known.is_some_and(failed) {
        return Err(TemplateError::FailedVariant {
            name: name.to_string(),
            size,
        });
    }
    let request = VariantRequest {
        size,
        by: Some(project.clone()),
        is_awaited: true,
        renew: false,
    };
    let report = ensure(node, &name, request).await?;
    if report.is_usable {
        return Ok(report);
    }
    Err(match report.state {
        BakeState::Failed { .. } => TemplateError::FailedVariant {
            name: name.to_string(),
            size,
        },
        BakeState::Baking { percent, .. } => TemplateError::BakingVariant {
            name: name.to_string(),
            size,
            percent: percent.min(100),
        },
        BakeState::NotBaked | BakeState::Waiting | BakeState::Ready => {
            let percent = 0;
            TemplateError::BakingVariant {
                name: name.to_string(),
                size,
                percent,
            }
        }
    })
}

/// Has a variant baked, for the project, or for nobody when an operator asks.
///
/// # Errors
/// [`TemplateError::Unknown`] or [`TemplateError::Node`].
pub(crate) async fn bake(
    node: &dyn NodeApi,
    name: &TemplateName,
    size: TemplateSize,
    right: BakeRight,
    project: &ProjectId,
) -> Result<VariantReport, TemplateError> {
    let request = VariantRequest {
        size,
        by: (right == BakeRight::Missing).then(|| project.clone()),
        is_awaited: false,
        renew: right == BakeRight::Anew,
    };
    ensure(node, name, request).await
}

async fn ensure(
    node: &dyn NodeApi,
    name: &TemplateName,
    request: VariantRequest,
) -> Result<VariantReport, TemplateError> {
    match node.ensure_variant(name, request).await {
        Ok(report) => Ok(report),
        Err(error) if error.code == ErrorCode::NotFound => Err(unknown(node, name).await),
        Err(error) => Err(TemplateError::Node(error)),
    }
}

pub(super) fn present(report: VariantReport) -> TemplateVariant {
    let (state, percent, detail) = present_state(report.state);
    TemplateVariant {
        cpu: u32::from(report.size.vcpus.get()),
        memory_mb: u64::from(report.size.memory),
        state,
        usable: report.is_usable,
        percent,
        detail,
        size_bytes: report.size_bytes,
        baked_at: report
            .baked_at
            .map(|seconds| rfc3339(seconds.saturating_mul(1000))),
        bake_ms: report.bake_ms,
    }
}
