//! Templates, as the node reports them.

use dayfly_api::{Template, TemplateRun, TemplateState};
use dayfly_node_api::{BakeState, NodeApi, NodeCalls, NodeError, TemplateReport};
use dayfly_types::ordered_template::is_ordered_name;
use dayfly_types::{ErrorCode, RunMeaning, TemplateName, TemplateSize};

use crate::template::variant;
use crate::time::rfc3339;

/// Why there is no template to start from. Nothing was created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("there is no template {name}; there are: {available}")]
    Unknown { name: String, available: String },
    #[error("template {name} is still being made ({percent} percent)")]
    Baking { name: String, percent: u8 },
    #[error("template {name} could not be made")]
    Failed { name: String },
    #[error("template {name} is still being made with {size} ({percent} percent)")]
    BakingVariant {
        name: String,
        size: TemplateSize,
        percent: u8,
    },
    #[error("template {name} could not be made with {size}")]
    FailedVariant { name: String, size: TemplateSize },
    #[error("the node does not say what templates it has")]
    Node(#[source] NodeError),
}

/// The template with this name, in whatever state it is.
///
/// # Errors
/// [`TemplateError::Unknown`] or [`TemplateError::Node`].
pub async fn find(
    node: &dyn NodeApi,
    name: &TemplateName,
) -> Result<TemplateReport, TemplateError> {
    if is_ordered_name(name) {
        // A name of the node's own. Whose it is, the database knows, by another name.
        return Err(unknown(node, name).await);
    }
    find_any(node, name).await
}

/// The same of the template that a sandbox was made from, also by a name of the node's own.
///
/// # Errors
/// As [`find`].
pub(crate) async fn find_any(
    node: &dyn NodeApi,
    name: &TemplateName,
) -> Result<TemplateReport, TemplateError> {
    match node.find_template(name).await {
        Ok(report) => Ok(report),
        Err(error) if error.code == ErrorCode::NotFound => Err(unknown(node, name).await),
        Err(error) => Err(TemplateError::Node(error)),
    }
}

/// Says what there is instead.
pub(super) async fn unknown(node: &dyn NodeApi, name: &TemplateName) -> TemplateError {
    let reports = match node.templates().await {
        Ok(reports) => reports,
        Err(error) => return TemplateError::Node(error),
    };
    let names = reports
        .iter()
        .filter(|report| !is_ordered_name(&report.name));
    let names: Vec<&str> = names.map(|report| report.name.as_str()).collect();
    let available = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    TemplateError::Unknown {
        name: name.to_string(),
        available,
    }
}

/// What a caller may have baked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BakeRight {
    /// What cannot be used yet.
    Missing,
    /// Also anew what can be used, which is everybody's: when its recipe is another by now.
    Anew,
}

/// Has the template baked, and gives the state that it is in then. The node may know recipes that
/// it did not know before.
///
/// # Errors
/// [`TemplateError::Unknown`] or [`TemplateError::Node`].
pub async fn bake(
    node: &dyn NodeApi,
    name: &TemplateName,
    right: BakeRight,
) -> Result<TemplateReport, TemplateError> {
    if is_ordered_name(name) {
        return Err(unknown(node, name).await);
    }
    let ordered = match right {
        BakeRight::Missing => node.ensure_template(name).await,
        BakeRight::Anew => node.renew_template(name).await,
    };
    match ordered {
        Ok(report) => Ok(report),
        Err(error) if error.code == ErrorCode::NotFound => Err(unknown(node, name).await),
        Err(error) => Err(TemplateError::Node(error)),
    }
}

/// The template, when a sandbox can start from it now. One that is not baked is ordered.
///
/// # Errors
/// [`TemplateError`].
pub async fn when_ready(
    node: &dyn NodeApi,
    mut report: TemplateReport,
    shown: &str,
) -> Result<TemplateReport, TemplateError> {
    if report.state == BakeState::NotBaked {
        let ordered = node.ensure_template(&report.name).await;
        report = ordered.map_err(TemplateError::Node)?;
    }
    usable(report, shown)
}

/// The template, when a sandbox can start from it now; errors call it `name`.
///
/// # Errors
/// [`TemplateError`].
pub(crate) fn usable(report: TemplateReport, name: &str) -> Result<TemplateReport, TemplateError> {
    if report.is_usable {
        return Ok(report);
    }
    let name = name.to_owned();
    match &report.state {
        // It was baked since it was asked about.
        BakeState::Ready => Ok(report),
        BakeState::NotBaked | BakeState::Waiting => Err(TemplateError::Baking { name, percent: 0 }),
        BakeState::Baking { percent, .. } => Err(TemplateError::Baking {
            name,
            percent: (*percent).min(100),
        }),
        BakeState::Failed { .. } => Err(TemplateError::Failed { name }),
    }
}

/// A template as the public API shows it.
#[must_use]
pub fn present(report: TemplateReport) -> Template {
    let (state, percent, detail) = present_state(report.state);
    Template {
        name: report.name.to_string(),
        description: report.description,
        alias_of: report.alias_of.map(|name| name.to_string()),
        state,
        usable: report.is_usable,
        percent,
        detail,
        cpu: u32::from(report.vcpus.get()),
        memory_mb: u64::from(report.memory.get()),
        disk_mb: report.disk_mib,
        size_bytes: report.size_bytes,
        run: match report.run {
            RunMeaning::Shell => TemplateRun::Shell,
            RunMeaning::Python => TemplateRun::Python,
            RunMeaning::PythonContext => TemplateRun::PythonContext,
        },
        contexts: report
            .contexts
            .iter()
            .map(|language| language.as_str().to_owned())
            .collect(),
        is_global: true,
        baked_at: report
            .baked_at
            .map(|seconds| rfc3339(seconds.saturating_mul(1000))),
        variants: report.variants.into_iter().map(variant::present).collect(),
    }
}

/// How far a bake is, in percent, and what is to be said of it.
pub(super) fn present_state(state: BakeState) -> (TemplateState, u8, Option<String>) {
    match state {
        BakeState::NotBaked => (TemplateState::NotBaked, 0, None),
        BakeState::Waiting => (TemplateState::Waiting, 0, None),
        BakeState::Baking { percent, step } => {
            (TemplateState::Baking, percent.min(100), Some(step))
        }
        BakeState::Ready => (TemplateState::Ready, 100, None),
        BakeState::Failed { reason } => (TemplateState::Failed, 0, Some(reason)),
    }
}
