//! `dayfly node`.

use dayfly_api::NodeView;

use crate::dispatch::Session;
use crate::exit_status;
use crate::failure::CommandError;
use crate::table::Table;

pub(crate) async fn show(session: &Session<'_>) -> Result<u8, CommandError> {
    let node = session
        .client
        .node()
        .await
        .map_err(|source| CommandError::call("cannot read the host's account", source))?;
    if session.printer.is_json() {
        session.printer.json(&node)?;
    } else {
        session.printer.table(&table(&node))?;
    }
    Ok(exit_status::OK)
}

fn table(node: &NodeView) -> Table {
    let mut table = Table::new(&["FIELD", "VALUE"]);
    let mut row = |field: &str, value: String| table.push(vec![field.to_owned(), value]);
    row("node", node.node.clone());
    row("isolation", node.isolation.clone());
    row(
        "engine",
        format!(
            "{} {} ({})",
            node.engine, node.engine_version, node.accelerator
        ),
    );
    row("sandboxes", node.sandboxes.to_string());
    row(
        "memory",
        format!(
            "{} of {} MiB committed, {} MiB reserved",
            node.memory_committed_mb, node.memory_total_mb, node.memory_reserve_mb
        ),
    );
    if node.memory_share > 1 {
        let (memory, disk) = (node.memory_share, node.disk_share);
        let sleeping = node.put_to_sleep;
        let text =
            format!("memory {memory} times, disk {disk} times; {sleeping} put to sleep for others");
        row("shared sandboxes", text);
    }
    if let Some(pressure) = &node.pressure {
        row("pressure", pressure.clone());
    }
    row(
        "disk",
        format!(
            "{} MiB committed, {} MiB available, {} MiB reserved",
            node.disk_committed_mb, node.disk_available_mb, node.disk_reserve_mb
        ),
    );
    row(
        "parked slots",
        format!("{} of {}", node.parked_slots, node.parked_slots_target),
    );
    for pool in &node.parked_engines {
        row(
            &format!("parked engines of {}", pool.template),
            format!("{} of {}", pool.parked, pool.target),
        );
    }
    table
}
