//! `dayfly __complete`: the ids and names that fit, one in a line.
//!
//! A shell waits for it with every press of the key, so it is quick and never complains. The parser does
//! not know it: its scripts offer every command that it knows.

use std::ffi::OsString;
use std::time::Duration;

use clap::CommandFactory as _;
use dayfly_client::{Client, ClientConfig, ClientError};

use crate::args::Args;
use crate::completion::expected::{Expected, Question, question};
use crate::env_vars::Environment;
use crate::failure::CommandError;
use crate::printer::Printer;
use crate::sandbox::prefixes;
use crate::settings::{self, Settings};
use crate::tenancy::context_file;
use crate::{exit_status, text};

/// A person waits.
const DEADLINE: Duration = Duration::from_millis(1500);

const NAME: &str = "__complete";

/// The words of a command line to complete, when that is what the program is called for:
/// `__complete -- WORD...`, the one under the cursor last.
pub(crate) fn words_in(arguments: &[OsString]) -> Option<Vec<String>> {
    match arguments {
        [name, dashes, words @ ..] if name == NAME && dashes == "--" => {
            let words = words.iter().map(|word| word.to_string_lossy().into_owned());
            Some(words.collect())
        }
        _ => None,
    }
}

pub(crate) async fn complete(
    words: &[String],
    environment: &Environment,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let mut command = Args::command();
    command.build();
    let Some(question) = question(&command, words) else {
        return Ok(exit_status::OK);
    };
    let found = tokio::time::timeout(DEADLINE, values(&question, environment)).await;
    let found = found.ok().flatten().unwrap_or_default();
    let fitting = found.iter().map(|value| text::visible(value));
    let lines = fitting
        .filter(|value| value.starts_with(&question.current))
        .map(|value| value + "\n");
    printer.data(&lines.collect::<String>())?;
    Ok(exit_status::OK)
}

async fn values(question: &Question, environment: &Environment) -> Option<Vec<String>> {
    if question.expected == Expected::Contexts {
        let path = settings::required_context_path(environment).ok()?;
        let file = context_file::read(&path).ok()??;
        return Some(file.contexts.into_keys().collect());
    }
    let settings = Settings::load(&question.global, environment).ok()?;
    let client = Client::new(ClientConfig {
        url: settings.url,
        key: settings.key,
    });
    from_server(&client.ok()?, &question.expected).await.ok()
}

async fn from_server(client: &Client, expected: &Expected) -> Result<Vec<String>, ClientError> {
    Ok(match expected {
        Expected::Sandboxes => sandboxes(client).await?,
        Expected::SandboxPaths => {
            let ids = sandboxes(client).await?.into_iter();
            ids.map(|id| id + ":").collect()
        }
        Expected::Templates => {
            let templates = client.templates().await?.into_iter();
            templates.map(|template| template.name).collect()
        }
        Expected::Snapshots => {
            let snapshots = client.list_snapshots(None).await?.into_iter();
            snapshots
                .flat_map(|snapshot| [Some(snapshot.id), snapshot.name])
                .flatten()
                .collect()
        }
        Expected::Volumes => {
            let volumes = client.list_volumes().await?.into_iter();
            volumes.map(|volume| volume.name).collect()
        }
        Expected::Projects => {
            let projects = client.projects().await?.into_iter();
            projects.map(|project| project.id).collect()
        }
        Expected::Commands { sandbox } => {
            let Ok(id) = prefixes::resolve(client, sandbox).await else {
                return Ok(Vec::new());
            };
            let commands = client.list_processes(&id).await?.into_iter();
            commands.map(|command| command.exec_id).collect()
        }
        // Of this machine.
        Expected::Contexts => Vec::new(),
    })
}

async fn sandboxes(client: &Client) -> Result<Vec<String>, ClientError> {
    let sandboxes = client.list_sandboxes().await?.into_iter();
    Ok(sandboxes
        .flat_map(|sandbox| [Some(sandbox.id), sandbox.name])
        .flatten()
        .collect())
}
