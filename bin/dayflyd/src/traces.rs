//! Where traces go: OpenTelemetry's own environment variables, and what this daemon says of itself.

use anyhow::Result;
use dayfly_trace::ExportSettings;
use dayfly_types::NodeId;

/// `None` when no variable names a receiver.
///
/// # Errors
/// For a variable that is not understood.
pub(crate) fn from_environment() -> Result<Option<ExportSettings>> {
    Ok(ExportSettings::from_variables(|name| {
        std::env::var(name).ok()
    })?)
}

/// Names the instance, unless the operator has.
pub(crate) fn with_instance(mut settings: ExportSettings, node: &NodeId) -> ExportSettings {
    let own = [
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", node.to_string()),
    ];
    for (key, value) in own {
        settings.resource.entry(key.to_owned()).or_insert(value);
    }
    settings
}
