//! Where traces go: OpenTelemetry's own environment variables, and what this daemon says of itself.

use anyhow::Result;
use dayfly_trace::ExportSettings;
use dayfly_types::NodeId;
use tokio::process::Command;

/// How OpenTelemetry's variables begin.
const PREFIX: &[u8] = b"OTEL_";

/// `None` when no variable names a receiver.
///
/// # Errors
/// For a variable that is not understood.
pub(crate) fn from_environment() -> Result<Option<ExportSettings>> {
    Ok(ExportSettings::from_variables(|name| {
        // What is no text is not understood, and must not look like nothing.
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    })?)
}

/// Keeps what is for the collector alone, its credentials too, from a process that sends nothing and
/// starts programs that need not know them.
pub(crate) fn hide_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(PREFIX) {
            command.env_remove(name);
        }
    }
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
