//! `dayfly logs`.

use dayfly_api::Process;
use dayfly_client::FollowEvent;

use crate::args::LogsArgs;
use crate::dispatch::Session;
use crate::exec::log_output::LogOutput;
use crate::exec::process;
use crate::failure::{CommandError, Subject};
use crate::sandbox::prefixes;
use crate::{exit_status, signals};

/// How much of a log one call reads.
const PIECE_BYTES: u64 = 1 << 20;

pub(crate) async fn logs(session: &Session<'_>, args: &LogsArgs) -> Result<u8, CommandError> {
    let work = async {
        show(session, args).await?;
        Ok(exit_status::OK)
    };
    if args.follow {
        return signals::until_left(work).await;
    }
    signals::unless_stopped(work).await
}

async fn show(session: &Session<'_>, args: &LogsArgs) -> Result<(), CommandError> {
    let id = prefixes::resolve(&session.client, &args.id).await?;
    match (&args.exec_id, args.follow) {
        (Some(exec), false) => kept(session, &id, exec, args).await,
        (Some(exec), true) => follow_one(session, &id, exec, args).await,
        (None, false) => {
            for one in processes(session, &id).await? {
                kept(session, &id, &one.exec_id, args).await?;
            }
            Ok(())
        }
        (None, true) => follow_all(session, &id).await,
    }
}

async fn processes(session: &Session<'_>, id: &str) -> Result<Vec<Process>, CommandError> {
    let listed = session.client.list_processes(id).await;
    listed.map_err(|source| failed(id, source))
}

fn failed(id: &str, source: dayfly_client::ClientError) -> CommandError {
    CommandError::call(format!("cannot read in {id}"), source).about(Subject::Command)
}

/// Prints what the guest has kept of a stream.
async fn kept(
    session: &Session<'_>,
    id: &str,
    exec: &str,
    args: &LogsArgs,
) -> Result<(), CommandError> {
    let stream = if args.stderr { "stderr" } else { "stdout" };
    let is_json = session.printer.is_json();
    let mut output = LogOutput::new(is_json);
    let mut offset = args.offset;
    loop {
        let read = session
            .client
            .read_output(id, exec, stream, offset, PIECE_BYTES)
            .await;
        let (first, bytes) = read.map_err(|source| failed(id, source))?;
        if first > offset {
            process::note_gap(session, stream, first - offset);
            output.gap(stream, first - offset).await?;
        }
        if bytes.is_empty() {
            return output.flush().await;
        }
        // The bytes of one stream are the data that was asked for, whichever it is.
        match args.stderr && is_json {
            true => output.stderr(&bytes).await?,
            false => output.stdout(&bytes).await?,
        }
        offset = first + bytes.len() as u64;
    }
}

/// Prints what one command prints until it ends, and leaves it alone.
async fn follow_one(
    session: &Session<'_>,
    id: &str,
    exec: &str,
    args: &LogsArgs,
) -> Result<(), CommandError> {
    let followed = session.client.follow_process(id, exec, args.offset, 0);
    let mut follower = followed.await.map_err(|source| failed(id, source))?;
    let mut output = LogOutput::new(session.printer.is_json());
    loop {
        let event = follower.next().await;
        match event.map_err(|source| failed(id, source))? {
            Some(FollowEvent::Stdout(bytes)) => output.stdout(&bytes).await?,
            Some(FollowEvent::Stderr(bytes)) => output.stderr(&bytes).await?,
            Some(FollowEvent::Gap { stream, bytes }) => {
                process::note_gap(session, &stream, bytes);
                output.gap(&stream, bytes).await?;
            }
            Some(FollowEvent::Reattached) => {}
            Some(FollowEvent::Exit(_)) | None => return output.flush().await,
        }
    }
}

/// Prints the lines of all commands that run now, and of those that ran.
async fn follow_all(session: &Session<'_>, id: &str) -> Result<(), CommandError> {
    let followed = session.client.follow_logs(id).await;
    let mut follow = followed.map_err(|source| failed(id, source))?;
    let mut output = LogOutput::new(session.printer.is_json());
    while let Some(line) = follow.next().await.map_err(|source| failed(id, source))? {
        let text = format!("{}\n", line.text);
        match line.is_stderr {
            true => output.stderr(text.as_bytes()).await?,
            false => output.stdout(text.as_bytes()).await?,
        }
    }
    // The stream also ends when the server loses sight of the commands.
    let is_running = |process: &Process| process.state == "running";
    if processes(session, id).await?.iter().any(is_running) {
        return Err(CommandError::Refused {
            what: format!("lost sight of what runs in {id}"),
            hint: "follow it again with `dayfly logs -f`",
        });
    }
    Ok(())
}
