//! `dayfly exec`, `dayfly shell` and `dayfly attach`.

use std::io::IsTerminal as _;

use dayfly_types::ExecId;
use dayfly_types::ids::ID_RANDOM_BYTES;

use crate::args::{AttachArgs, ExecArgs, ProcessArgs, ShellArgs};
use crate::dispatch::Session;
use crate::exec::guest_output::GuestOutput;
use crate::exec::process;
use crate::failure::{CommandError, Subject};
use crate::sandbox::prefixes;
use crate::signals::StopSignals;

/// What `dayfly shell` runs: the better shell if the template has it.
const SHELL: &str = "if command -v bash >/dev/null; then exec bash -l; else exec sh -l; fi";

pub(crate) async fn exec(session: &Session<'_>, args: &ExecArgs) -> Result<u8, CommandError> {
    let mut request = process::request(&args.process, &args.command)?;
    let exec = new_id()?;
    request.exec_id = Some(exec.clone());
    let mut signals = StopSignals::install()?;
    let id = tokio::select! {
        id = prefixes::resolve(&session.client, &args.id) => id?,
        signal = signals.next() => return Err(CommandError::Interrupted { signal }),
    };
    if args.detach {
        return start(session, &id, request).await;
    }
    let mut output = GuestOutput::new(session.printer.is_json());
    let ending = tokio::select! {
        ending = process::follow(session, &id, &request, &mut output) => ending?,
        signal = signals.next() => {
            session.printer.note(&format!("stopping the command in {id}"));
            // It would go on without a reader; whoever stops `dayfly exec` means the command.
            let _ = session.client.delete_process(&id, &exec).await;
            return Err(CommandError::Interrupted { signal });
        }
    };
    process::conclude(session, &id, &ending, &output, None)
}

/// Starts a command and leaves it running.
async fn start(
    session: &Session<'_>,
    id: &str,
    mut request: dayfly_api::ExecRequest,
) -> Result<u8, CommandError> {
    request.background = Some(true);
    let started = session.client.start_process(id, &request).await;
    let process = started
        .map_err(|source| CommandError::call(format!("cannot run the command in {id}"), source))?;
    if session.printer.is_json() {
        session.printer.json(&process)?;
    } else {
        session.printer.line(&process.exec_id)?;
    }
    Ok(crate::exit_status::OK)
}

pub(crate) async fn shell(session: &Session<'_>, args: &ShellArgs) -> Result<u8, CommandError> {
    let process = ProcessArgs {
        stdin: true,
        tty: true,
        user: args.user.clone(),
        cwd: args.cwd.clone(),
        ..ProcessArgs::default()
    };
    let words = ["/bin/sh", "-c", SHELL].map(str::to_owned);
    let args = ExecArgs {
        id: args.id.clone(),
        process,
        detach: false,
        command: words.to_vec(),
    };
    exec(session, &args).await
}

/// Goes on with a command that was started before.
pub(crate) async fn attach(session: &Session<'_>, args: &AttachArgs) -> Result<u8, CommandError> {
    let id = prefixes::resolve(&session.client, &args.id).await?;
    let found = session.client.get_process(&id, &args.exec_id).await;
    let failed = |source| {
        CommandError::call(format!("cannot attach in {id}"), source).about(Subject::Command)
    };
    let known = found.map_err(failed)?;
    let has_terminal = known.terminal && known.state == "running" && std::io::stdin().is_terminal();
    // Of a terminal the past is noise; what was printed to a pipe belongs together.
    let from = if known.terminal && !args.all {
        known.stdout.end
    } else {
        args.offset
    };
    let followed = session
        .client
        .follow_process(&id, &args.exec_id, from, 0)
        .await;
    let follower = followed.map_err(failed)?;
    let mut output = GuestOutput::new(session.printer.is_json());
    let takes_input = known.takes_stdin && (has_terminal || args.stdin);
    let ending = process::stream(
        session,
        &id,
        follower,
        &mut output,
        takes_input,
        has_terminal,
    )
    .await?;
    process::conclude(session, &id, &ending, &output, None)
}

fn new_id() -> Result<String, CommandError> {
    let mut random = [0; ID_RANDOM_BYTES];
    getrandom::fill(&mut random)
        .map_err(|error| CommandError::local("the system has no randomness", error.into()))?;
    Ok(ExecId::from_random(random).to_string())
}
