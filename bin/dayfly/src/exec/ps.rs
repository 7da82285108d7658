//! `dayfly ps` and `dayfly kill`.

use dayfly_api::Process;
use serde_json::json;

use crate::args::KillArgs;
use crate::dispatch::Session;
use crate::exit_status;
use crate::failure::CommandError;
use crate::sandbox::args::SandboxArgs;
use crate::sandbox::prefixes;
use crate::table::Table;

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

pub(crate) async fn kill(session: &Session<'_>, args: &KillArgs) -> Result<u8, CommandError> {
    let id = prefixes::resolve(&session.client, &args.id).await?;
    let signal = args.signal.unwrap_or(SIGNAL_KILL);
    let sent = session
        .client
        .signal_process(&id, &args.exec_id, signal)
        .await;
    sent.map_err(|source| CommandError::call(format!("cannot signal in {id}"), source))?;
    if session.printer.is_json() {
        let done = json!({"sandbox_id": id, "exec_id": args.exec_id, "signal": signal});
        session.printer.json(&done)?;
    }
    Ok(exit_status::OK)
}
