//! What only the operator may decide: which database a node works for, and what is given up.

use anyhow::{Context, Result};
use dayfly_installation::DataDirectory;
use dayfly_node_api::{NodeCalls, NodeClient};
use dayfly_types::SandboxId;
use serde::Serialize;

use crate::args::{DatabaseArguments, ForgetArguments};

/// What was decided.
#[derive(Debug, Serialize)]
pub(crate) struct Decided {
    pub(crate) done: String,
}

/// Has the node accept the database of this directory, whichever it is.
pub(crate) async fn accept_database(arguments: &DatabaseArguments) -> Result<Decided> {
    let node = node_of(&DataDirectory::open(&arguments.data_dir)?)?;
    node.accept_database()
        .await
        .context("the node does not take it")?;
    Ok(Decided {
        done:
            "accepted: within half a minute the node works for this database, and sandboxes that \
               it does not know are adopted into it"
                .to_owned(),
    })
}

/// Gives up a sandbox whose record cannot be read.
pub(crate) async fn forget(arguments: &ForgetArguments) -> Result<Decided> {
    let id = SandboxId::parse(&arguments.unreadable).context("that is no id of a sandbox")?;
    let node = node_of(&DataDirectory::open(&arguments.data_dir)?)?;
    node.forget_unreadable(&id)
        .await
        .context("it is not given up")?;
    Ok(Decided {
        done: format!(
            "{id} is given up: its captures are collected when nothing else needs them, and what \
             its machine used is given back at the next start"
        ),
    })
}

fn node_of(directory: &DataDirectory) -> Result<NodeClient> {
    directory.require_running()?;
    Ok(NodeClient::new(directory.node_socket()))
}

/// For a person.
pub(crate) fn render(decided: &Decided) -> String {
    decided.done.clone()
}
