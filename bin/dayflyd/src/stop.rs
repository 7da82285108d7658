//! `dayflyd stop`: deletes running sandboxes through the daemon that owns them.

use anyhow::{Context, Result, bail};
use dayfly_client::{ApiKey, Client, ClientConfig};
use serde::Serialize;

use crate::args::StopArguments;
use crate::data_directory::DataDirectory;

/// What was deleted.
#[derive(Debug, Serialize)]
pub(crate) struct Stopped {
    pub(crate) deleted: Vec<String>,
    pub(crate) failed: Vec<String>,
}

/// Deletes every running sandbox of the daemon on this directory.
pub(crate) async fn run(arguments: &StopArguments) -> Result<Stopped> {
    let directory = DataDirectory::open(&arguments.data_dir)?;
    let client = client_of(&directory)?;
    let mut stopped = Stopped {
        deleted: Vec::new(),
        failed: Vec::new(),
    };
    for sandbox in client
        .list_sandboxes()
        .await
        .context("cannot list sandboxes")?
    {
        // A hibernated sandbox is data, and data goes only when somebody names it.
        if sandbox.status == "hibernated" || sandbox.status == "hibernating" {
            continue;
        }
        match client.delete_sandbox(&sandbox.id).await {
            Ok(()) => stopped.deleted.push(sandbox.id),
            Err(error) => {
                tracing::error!(sandbox_id = sandbox.id, %error, "cannot delete");
                stopped.failed.push(sandbox.id);
            }
        }
    }
    Ok(stopped)
}

/// A client of the daemon that runs on this directory, with the administrator's key.
pub(crate) fn client_of(directory: &DataDirectory) -> Result<Client> {
    let Some(running) = directory.running()? else {
        bail!(
            "no dayflyd runs on {}; start it first",
            directory.root().display()
        );
    };
    let key = std::fs::read_to_string(directory.admin_key())
        .context("cannot read the administrator's key")?;
    let config = ClientConfig {
        url: format!("http://{}", running.listen),
        key: Some(ApiKey::parse(&key).context("the administrator's key is damaged")?),
    };
    Client::new(config).context("cannot make a client")
}

/// For a person.
pub(crate) fn render(stopped: &Stopped) -> String {
    let mut text = format!("deleted {} sandboxes", stopped.deleted.len());
    for id in &stopped.failed {
        text.push_str(&format!("\ncannot delete {id}"));
    }
    text
}
