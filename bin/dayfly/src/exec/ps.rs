//! `dayfly ps` and `dayfly kill`.

use dayfly_api::Process;
use dayfly_client::ClientError;
use dayfly_types::ErrorCode;
use serde_json::json;

use crate::args::KillArgs;
use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::sandbox::args::SandboxArgs;
use crate::sandbox::prefixes;
use crate::table::Table;
use crate::{exit_status, text};

const SIGNAL_KILL: i32 = 9;

pub(crate) async fn list(session: &Session<'_>, args: &SandboxArgs) -> Result<u8, CommandError> {
    let id = prefixes::resolve(&session.client, &args.id).await?;
    let listed = session.client.list_processes(&id).await;
    let processes =
        listed.map_err(|source| CommandError::call(format!("cannot list in {id}"), source))?;
    if session.printer.is_json() {
        session.printer.json(&processes)?;
        return Ok(exit_status::OK);
    }
    let mut table = Table::new(&[
        "EXEC", "STATE", "EXIT", "TIME", "STDOUT", "STDERR", "COMMAND",
    ]);
    for process in &processes {
        table.push(row(process));
    }
    session.printer.table(&table)?;
    Ok(exit_status::OK)
}

fn row(process: &Process) -> Vec<String> {
    let exit = process.exit_code.map(|code| code.to_string());
    let seconds = process.duration_ms / 1000;
    vec![
        process.exec_id.clone(),
        process
            .reason
            .clone()
            .unwrap_or_else(|| process.state.clone()),
        exit.unwrap_or_default(),
        format!("{seconds}s"),
        process.stdout.end.to_string(),
        process.stderr.end.to_string(),
        process.title.clone(),
    ]
}

/// A command that has ended is not found by whoever signals it, and still listed.
async fn not_sent(
    session: &Session<'_>,
    id: &str,
    exec: &str,
    source: ClientError,
) -> CommandError {
    let known = match source.api_code() {
        Some(ErrorCode::NotFound) => session.client.get_process(id, exec).await.ok(),
        _ => None,
    };
    match known.filter(|process| process.state != "running") {
        Some(ended) => CommandError::Refused {
            what: format!(
                "command {exec} has ended already: {}",
                text::visible(ended.reason.as_deref().unwrap_or(&ended.state))
            ),
            hint: "`dayfly ps ID` shows how, `dayfly logs ID EXEC` what it printed",
        },
        None => CommandError::call(format!("cannot signal command {exec} in {id}"), source)
            .about(Subject::Command),
    }
}

pub(crate) async fn kill(session: &Session<'_>, args: &KillArgs) -> Result<u8, CommandError> {
    let id = prefixes::resolve(&session.client, &args.id).await?;
    let signal = args.signal.unwrap_or(SIGNAL_KILL);
    let sent = session
        .client
        .signal_process(&id, &args.exec_id, signal)
        .await;
    if let Err(source) = sent {
        return Err(not_sent(session, &id, &args.exec_id, source).await);
    }
    if session.printer.is_json() {
        let done = json!({"sandbox_id": id, "exec_id": args.exec_id, "signal": signal});
        session.printer.json(&done)?;
    }
    Ok(exit_status::OK)
}
