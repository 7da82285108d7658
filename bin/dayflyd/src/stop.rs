//! `dayflyd stop`: deletes running sandboxes through the node that owns them.

use anyhow::{Context, Result};
use dayfly_installation::DataDirectory;
use dayfly_node_api::{NodeCalls, NodeClient, SandboxReport};
use dayfly_types::SandboxState;
use serde::Serialize;

use crate::args::StopArguments;

/// What was deleted.
#[derive(Debug, Serialize)]
pub(crate) struct Stopped {
    pub(crate) deleted: Vec<String>,
    pub(crate) failed: Vec<String>,
}

/// Deletes every running sandbox of the daemon on this directory. The node is asked: a key sees one
/// project, and a machine runs whatever the database knows of it.
pub(crate) async fn run(arguments: &StopArguments) -> Result<Stopped> {
    let directory = DataDirectory::open(&arguments.data_dir)?;
    directory.require_running()?;
    let node = NodeClient::new(directory.node_socket());
    let mut stopped = Stopped {
        deleted: Vec::new(),
        failed: Vec::new(),
    };
    let sandboxes = node.sandboxes().await.context("cannot list sandboxes")?;
    for sandbox in sandboxes.into_iter().filter(is_no_data) {
        let id = sandbox.id.to_string();
        match node.delete_sandbox(&sandbox.id).await {
            Ok(()) => stopped.deleted.push(id),
            Err(error) => {
                tracing::error!(sandbox_id = id, %error, "cannot delete");
                stopped.failed.push(id);
            }
        }
    }
    Ok(stopped)
}

/// A hibernated sandbox is data, and data goes only when somebody names it.
fn is_no_data(sandbox: &SandboxReport) -> bool {
    let is_asleep = matches!(
        sandbox.state,
        SandboxState::Hibernated | SandboxState::Hibernating
    );
    !is_asleep && sandbox.unavailable.is_none()
}

/// For a person.
pub(crate) fn render(stopped: &Stopped) -> String {
    let mut text = format!("deleted {} sandboxes", stopped.deleted.len());
    for id in &stopped.failed {
        text.push_str(&format!("\ncannot delete {id}"));
    }
    text
}
