//! `dayfly info`.

use dayfly_api::{Sandbox, VolumeMount};

use crate::args::InfoArgs;
use crate::dispatch::Session;
use crate::exit_status;
use crate::failure::CommandError;
use crate::sandbox::prefixes;
use crate::table::Table;

pub(crate) async fn show(session: &Session<'_>, args: &InfoArgs) -> Result<u8, CommandError> {
    let id = prefixes::resolve(&session.client, &args.id).await?;
    let sandbox = session
        .client
        .get_sandbox(&id)
        .await
        .map_err(|source| CommandError::call(format!("cannot read sandbox {id}"), source))?;
    if session.printer.is_json() {
        session.printer.json(&sandbox)?;
    } else {
        session.printer.table(&table(&sandbox))?;
    }
    Ok(exit_status::OK)
}

fn table(sandbox: &Sandbox) -> Table {
    let mut table = Table::new(&["FIELD", "VALUE"]);
    let mut row = |field: &str, value: String| table.push(vec![field.to_owned(), value]);
    row("id", sandbox.id.clone());
    if let Some(name) = &sandbox.name {
        row("name", name.clone());
    }
    row("template", sandbox.template.clone());
    row("status", sandbox.status.clone());
    if let Some(reason) = &sandbox.reason {
        row("reason", reason.clone());
    }
    if let Some(condition) = &sandbox.condition {
        row("condition", condition.clone());
    }
    row("isolation", sandbox.isolation.clone());
    row("cpu", sandbox.cpu.to_string());
    if let Some(limit) = sandbox.cpu_limit {
        row("cpu limit", limit.to_string());
    }
    row("memory", format!("{} MiB", sandbox.memory_mb));
    row("disk", format!("{} GiB", sandbox.disk_gb));
    if let Some(snapshot) = &sandbox.from_snapshot {
        row("from snapshot", snapshot.clone());
    }
    row("network", sandbox.network_mode.as_str().to_owned());
    for volume in &sandbox.volumes {
        row(&format!("volume {}", volume.name), place(volume));
    }
    row("created", sandbox.created_at.clone());
    row(
        "expires",
        sandbox
            .expires_at
            .clone()
            .unwrap_or_else(|| "never".to_owned()),
    );
    row(
        "persistent",
        if sandbox.persistent { "yes" } else { "no" }.to_owned(),
    );
    if let Some(seconds) = sandbox.idle_seconds {
        let action = sandbox.on_timeout.as_str();
        row("when idle", format!("{action} after {seconds} s"));
    }
    row("class", sandbox.class.as_str().to_owned());
    if let Some(reason) = &sandbox.sleep_reason {
        row("sleeps because of", reason.clone());
    }
    if let Some(boot_ms) = sandbox.boot_ms {
        row("restored in", format!("{boot_ms} ms"));
    }
    for (stage, microseconds) in &sandbox.boot_stages_us {
        row(&format!("stage {stage}"), format!("{microseconds} us"));
    }
    if !sandbox.env_names.is_empty() {
        row("environment", sandbox.env_names.join(", "));
    }
    for (key, value) in &sandbox.metadata {
        row(&format!("metadata {key}"), value.clone());
    }
    table
}

fn place(volume: &VolumeMount) -> String {
    let path = volume.path.clone().unwrap_or_default();
    match volume.read_only {
        Some(true) => format!("{path} (read only)"),
        Some(false) | None => path,
    }
}
