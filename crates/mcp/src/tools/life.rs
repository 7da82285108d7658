//! Sandboxes themselves.

use dayfly_api::{CreateSandbox, OnTimeout, RuleWish, Sandbox};
use dayfly_types::limits::MCP_HIBERNATE_SECONDS;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Site, unless_cancelled};
use crate::error::ToolError;
use crate::output::ToolOutput;

#[derive(Debug, Deserialize)]
pub(super) struct CreateArguments {
    name: Option<String>,
    template: Option<String>,
    ttl_seconds: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct ListArguments {
    max_entries: usize,
}

/// Creates a sandbox that the model asked for. Its network is the one that the client's own has: a
/// model cannot widen it.
pub(super) async fn create_sandbox(
    site: Site<'_>,
    arguments: CreateArguments,
) -> Result<ToolOutput, ToolError> {
    let settings = site.home.settings();
    let wish = CreateSandbox {
        template: Some(
            arguments
                .template
                .unwrap_or_else(|| settings.template.clone()),
        ),
        name: arguments.name,
        ttl_seconds: Some(arguments.ttl_seconds),
        idle_seconds: Some(MCP_HIBERNATE_SECONDS),
        on_timeout: Some(OnTimeout::Hibernate),
        egress_allowlist: settings
            .allow
            .as_ref()
            .map(|hosts| hosts.iter().map(RuleWish::text).collect()),
        ..CreateSandbox::default()
    };
    let made = site
        .client
        .create_when_ready_unless(&wish, site.cancel.cancelled(), |_| {});
    let sandbox = made.await?.ok_or(ToolError::Cancelled)?;
    site.home.keep(&sandbox.id);
    let text = format!("sandbox {} is there", sandbox.id);
    Ok(ToolOutput::text(text).structured(summary(&sandbox)))
}

fn summary(sandbox: &Sandbox) -> Value {
    json!({"id": sandbox.id, "name": sandbox.name, "template": sandbox.template,
        "status": sandbox.status, "created_at": sandbox.created_at,
        "expires_at": sandbox.expires_at})
}

pub(super) async fn list_sandboxes(
    site: Site<'_>,
    arguments: ListArguments,
) -> Result<ToolOutput, ToolError> {
    let mut all = unless_cancelled(site.cancel, site.client.list_sandboxes()).await??;
    all.retain(|sandbox| site.home.is_reached(&sandbox.id));
    let left_out = all.len().saturating_sub(arguments.max_entries);
    // Oldest first, so the newest stay.
    let shown = all.split_off(left_out);
    let mut lines = match (shown.len(), left_out) {
        (0, _) => "there are no sandboxes".to_owned(),
        (count, 0) => format!("{count} sandboxes"),
        (count, left_out) => format!("the newest {count} sandboxes; {left_out} are left out"),
    };
    for sandbox in &shown {
        let name = sandbox.name.as_deref().unwrap_or("-");
        lines.push_str(&format!(
            "\n{} {name} {} {}",
            sandbox.id, sandbox.template, sandbox.status
        ));
    }
    let sandboxes: Vec<Value> = shown.iter().map(summary).collect();
    let facts = json!({"sandboxes": sandboxes, "left_out": left_out});
    Ok(ToolOutput::text(lines).structured(facts))
}

pub(super) async fn sandbox_info(site: Site<'_>) -> Result<ToolOutput, ToolError> {
    let sandbox = site.client.get_sandbox(site.sandbox).await?;
    let network = site.client.network(site.sandbox).await?;
    let rules: Vec<String> = network.rules.iter().map(|rule| rule.id.clone()).collect();
    let mut facts = summary(&sandbox);
    facts["cpu"] = sandbox.cpu.into();
    facts["memory_mb"] = sandbox.memory_mb.into();
    facts["disk_gb"] = sandbox.disk_gb.into();
    facts["network_mode"] = network.mode.as_str().into();
    facts["network_rules"] = rules.clone().into();
    facts["isolation"] = sandbox.isolation.clone().into();
    let reach = if rules.is_empty() {
        network.mode.as_str().to_owned()
    } else {
        format!("{} ({})", network.mode.as_str(), rules.join(", "))
    };
    let text = format!(
        "sandbox {} ({}) is {}\ntemplate {}, {} CPUs, {} MiB memory, {} GiB disk\nnetwork: {reach}\n\
         deleted: {}",
        sandbox.id,
        sandbox.name.as_deref().unwrap_or("without a name"),
        sandbox.status,
        sandbox.template,
        sandbox.cpu,
        sandbox.memory_mb,
        sandbox.disk_gb,
        sandbox.expires_at.as_deref().unwrap_or("never by itself"),
    );
    Ok(ToolOutput::text(text).structured(facts))
}

pub(super) async fn delete_sandbox(site: Site<'_>) -> Result<ToolOutput, ToolError> {
    // Known by its name it must be found before, or a wrong one would look deleted.
    let sandbox = site.client.get_sandbox(site.sandbox).await?;
    site.client.delete_sandbox(&sandbox.id).await?;
    site.home.forget(&sandbox.id);
    Ok(ToolOutput::text(format!(
        "sandbox {} is deleted",
        sandbox.id
    )))
}
