//! `dayfly top`.

use std::collections::HashMap;

use dayfly_api::{Sandbox, SandboxLoad, SandboxLoadList};
use dayfly_client::{ProjectChoice, SandboxFilter};
use serde_json::{Value, json};

use crate::args::TopArgs;
use crate::dispatch::Session;
use crate::exec::terminal::Keys;
use crate::failure::CommandError;
use crate::sandbox::amounts::{mebibytes, percent};
use crate::sandbox::life;
use crate::table::Table;
use crate::{exit_status, signals};

/// Begins at the top left of an empty screen.
const CLEAR: &str = "\x1b[H\x1b[2J";
/// The key that ends it, as in `top` and `less`.
const QUIT: u8 = b'q';

/// What one sandbox used between two looks.
struct Use {
    sandbox: Sandbox,
    /// Of one processor.
    cpu_percent: Option<f64>,
    memory_bytes: Option<u64>,
}

pub(crate) async fn top(session: &Session<'_>, args: &TopArgs) -> Result<u8, CommandError> {
    if let Some(since) = &args.since {
        return signals::unless_stopped(life::show(session, args, since)).await;
    }
    let printer = session.printer;
    let is_once = args.once || printer.is_json() || !printer.can_clear();
    if is_once {
        return signals::unless_stopped(watch(session, args, is_once)).await;
    }
    let mut keys = Keys::listen();
    tokio::select! {
        outcome = signals::until_left(watch(session, args, is_once)) => outcome,
        () = keys.pressed(QUIT) => Ok(exit_status::OK),
    }
}

async fn watch(session: &Session<'_>, args: &TopArgs, is_once: bool) -> Result<u8, CommandError> {
    let filter = SandboxFilter {
        projects: args.whose.choice(),
        ..SandboxFilter::default()
    };
    let mut before = read(session, &filter.projects).await?;
    loop {
        tokio::time::sleep(args.every).await;
        let now = read(session, &filter.projects).await?;
        let listed = session.client.find_sandboxes(&filter).await;
        let sandboxes =
            listed.map_err(|source| CommandError::call("cannot list sandboxes", source))?;
        let uses = uses(sandboxes, &before, &now);
        show(session, &uses, is_once)?;
        if is_once {
            return Ok(exit_status::OK);
        }
        before = now;
    }
}

async fn read(
    session: &Session<'_>,
    projects: &ProjectChoice,
) -> Result<SandboxLoadList, CommandError> {
    let loads = session.client.sandbox_loads(projects).await;
    loads.map_err(|source| CommandError::call("cannot read what sandboxes use", source))
}

/// The busiest first.
fn uses(sandboxes: Vec<Sandbox>, before: &SandboxLoadList, now: &SandboxLoadList) -> Vec<Use> {
    let by_id = |list: &SandboxLoadList| -> HashMap<String, SandboxLoad> {
        let items = list.items.iter().cloned();
        items.map(|load| (load.id.clone(), load)).collect()
    };
    let (old, new) = (by_id(before), by_id(now));
    let elapsed_us = now.at_ms.saturating_sub(before.at_ms).max(1) * 1000;
    let cpu_percent = |id: &str| {
        let used = new.get(id)?.cpu_us.checked_sub(old.get(id)?.cpu_us)?;
        #[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
        let percent = used as f64 * 100.0 / elapsed_us as f64;
        Some(percent)
    };
    let mut uses: Vec<Use> = sandboxes
        .into_iter()
        .map(|sandbox| Use {
            cpu_percent: cpu_percent(&sandbox.id),
            memory_bytes: new.get(&sandbox.id).map(|load| load.memory_bytes),
            sandbox,
        })
        .collect();
    uses.sort_by(|a, b| {
        let cpu = |it: &Use| it.cpu_percent.unwrap_or(-1.0);
        cpu(b).total_cmp(&cpu(a))
    });
    uses
}

fn show(session: &Session<'_>, uses: &[Use], is_once: bool) -> Result<(), CommandError> {
    let printer = session.printer;
    if printer.is_json() {
        let items: Vec<_> = uses.iter().map(object).collect();
        return printer.json(&items);
    }
    let mut table = Table::new(&["ID", "TEMPLATE", "STATUS", "CPU", "OWN MEMORY", "OF"]);
    for one in uses {
        table.push(vec![
            one.sandbox.id.clone(),
            one.sandbox.template.clone(),
            one.sandbox.status.clone(),
            percent(one.cpu_percent),
            mebibytes(one.memory_bytes),
            format!("{} MiB", one.sandbox.memory_mb),
        ]);
    }
    if uses.iter().any(|one| one.sandbox.project.is_some()) {
        table.lead_with_projects(uses.iter().map(|one| &one.sandbox.project));
    }
    if !is_once {
        printer.data(CLEAR)?;
    }
    printer.table(&table)
}

/// One line of the table, for programs.
fn object(one: &Use) -> Value {
    let mut object = json!({
        "id": one.sandbox.id,
        "template": one.sandbox.template,
        "status": one.sandbox.status,
        "cpu_percent": one.cpu_percent,
        "memory_bytes": one.memory_bytes,
        "memory_mb_limit": one.sandbox.memory_mb,
    });
    if let Some(project) = &one.sandbox.project {
        object["project"] = project.as_str().into();
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at_ms: u64, cpu_us: u64) -> SandboxLoadList {
        SandboxLoadList {
            at_ms,
            items: vec![SandboxLoad {
                id: "sb-1".to_owned(),
                cpu_us,
                memory_bytes: 3 << 20,
                project: None,
            }],
        }
    }

    #[test]
    fn a_load_is_time_of_a_processor_in_time_of_the_wall() {
        let sandbox = |id: &str| -> Sandbox {
            serde_json::from_value(json!({
                "id": id, "template": "base", "status": "running", "cpu": 1, "memory_mb": 512,
                "created_at": "2026-01-01T00:00:00Z", "metadata": {}, "persistent": false,
                "ttl_seconds": null, "expires_at": null, "idle_seconds": null,
                "on_timeout": "delete", "disk_gb": 2.0, "volumes": [], "network_mode": "deny",
                "boot_mode": "restore", "boot_stages_us": {}, "isolation": "emulated",
            }))
            .unwrap()
        };
        let sandboxes = vec![sandbox("sb-2"), sandbox("sb-1")];
        let uses = uses(sandboxes, &reading(1000, 5), &reading(3000, 500_005));
        assert_eq!(uses[0].sandbox.id, "sb-1");
        assert_eq!(uses[0].cpu_percent, Some(25.0));
        assert_eq!(uses[0].memory_bytes, Some(3 << 20));
        assert_eq!((uses[1].cpu_percent, uses[1].memory_bytes), (None, None));
    }
}
