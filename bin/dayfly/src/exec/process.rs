//! Running a command in a sandbox that exists.

use std::borrow::Cow;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use dayfly_api::{Command, ExecExitEvent, ExecRequest};
use dayfly_client::{FollowEvent, FollowInput, Follower};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::args::ProcessArgs;
use crate::dispatch::Session;
use crate::exec::guest_output::{GuestOutput, KeptOutput};
use crate::exec::local_input;
use crate::exec::terminal::{self, RawTerminal};
use crate::exit_status;
use crate::failure::CommandError;
use crate::network::denials::{self, Denials};

/// The request that the flags ask for.
pub(crate) fn request(args: &ProcessArgs, command: &[String]) -> Result<ExecRequest, CommandError> {
    if args.tty && !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        return Err(CommandError::Refused {
            what: "-t needs a terminal as standard input and output".to_owned(),
            hint: "leave -t out: `-i` alone passes standard input on",
        });
    }
    Ok(ExecRequest {
        cwd: args.cwd.clone(),
        env: environment(args),
        user: args.user.clone(),
        stdin_open: args.stdin.then_some(true),
        terminal: args.tty.then(terminal::size),
        timeout_seconds: args.timeout.map(|limit| limit.as_secs_f64()),
        memory_mb: args.memory_mb,
        cpu_seconds: args.cpu_time.map(|limit| limit.as_secs_f64()),
        max_processes: args.max_processes,
        // A list keeps the quoting of the caller's shell.
        ..ExecRequest::new(Command::Argv(command.to_vec()))
    })
}

/// What was asked for, and with a terminal what kind of terminal it is.
fn environment(args: &ProcessArgs) -> Option<std::collections::BTreeMap<String, String>> {
    let kind = std::env::var("TERM").ok().filter(|_| args.tty);
    let kind = kind.map(|kind| ("TERM".to_owned(), kind));
    let pairs = args.env.iter().cloned();
    let all: std::collections::BTreeMap<_, _> = kind.into_iter().chain(pairs).collect();
    (!all.is_empty()).then_some(all)
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ending {
    exit: ExecExitEvent,
    elapsed: Duration,
    /// What may be the reason, when it failed.
    denials: Option<Denials>,
}

/// Starts a command and runs it to its end.
pub(crate) async fn follow(
    session: &Session<'_>,
    id: &str,
    request: &ExecRequest,
    output: &mut GuestOutput,
) -> Result<Ending, CommandError> {
    let started = session.client.follow_exec(id, request.clone()).await;
    let follower = started
        .map_err(|source| CommandError::call(format!("cannot run the command in {id}"), source))?;
    let takes_input = request.stdin_open == Some(true) || request.terminal.is_some();
    let has_terminal = request.terminal.is_some();
    stream(session, id, follower, output, takes_input, has_terminal).await
}

/// Passes bytes both ways until the command ends.
pub(crate) async fn stream(
    session: &Session<'_>,
    id: &str,
    mut follower: Follower,
    output: &mut GuestOutput,
    takes_input: bool,
    has_terminal: bool,
) -> Result<Ending, CommandError> {
    let start = Instant::now();
    let input = follower.take_input();
    let mut screen = match (&input, has_terminal) {
        (Some(input), true) => Some(Screen {
            terminal: RawTerminal::enter()?,
            input: input.clone(),
        }),
        _ => None,
    };
    if let Some(input) = input.filter(|_| takes_input) {
        local_input::pass_on(input);
    }
    loop {
        let event = tokio::select! {
            event = follower.next() => event,
            () = next_size(screen.as_mut()) => continue,
        };
        let what = || format!("lost the command {} in {id}", follower.exec_id());
        match event.map_err(|source| CommandError::call(what(), source))? {
            Some(FollowEvent::Stdout(bytes)) => output.stdout(&bytes).await?,
            Some(FollowEvent::Stderr(bytes)) => output.stderr(&bytes).await?,
            Some(FollowEvent::Gap { stream, bytes }) => {
                output.note_gap();
                note_gap(session, &stream, bytes);
            }
            Some(FollowEvent::Reattached) => {}
            Some(FollowEvent::Exit(exit)) => {
                let elapsed = start.elapsed();
                drop(screen);
                // A person at a terminal has seen more than we could say.
                let is_asked = exit.exit_code != 0 && !has_terminal;
                let denials = match is_asked {
                    true => denials::of_command(session, id, follower.exec_id()).await,
                    false => None,
                };
                return Ok(Ending {
                    exit,
                    elapsed,
                    denials,
                });
            }
            // The exit is always the last event.
            None => {
                let text = format!("the command {} ended without a status", follower.exec_id());
                let hint = "look at it with `dayfly ps`";
                return Err(CommandError::Refused { what: text, hint });
            }
        }
    }
}

/// Says that the guest's log had no room for all of a stream.
pub(crate) fn note_gap(session: &Session<'_>, stream: &str, bytes: u64) {
    let text = format!("{bytes} bytes of {stream} were dropped by the sandbox's log");
    session.printer.note(&text);
}

/// A terminal and the way to tell the guest about its size.
struct Screen {
    terminal: RawTerminal,
    input: mpsc::Sender<FollowInput>,
}

async fn next_size(screen: Option<&mut Screen>) {
    let Some(screen) = screen else {
        return std::future::pending().await;
    };
    let size = screen.terminal.resized().await;
    let _ = screen.input.send(FollowInput::Resize(size)).await;
}

/// The one object of `run --json` and `exec --json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    sandbox_id: &'a str,
    stdout: Cow<'a, str>,
    stderr: Cow<'a, str>,
    /// 124 when `reason` is `timeout`.
    exit_code: i32,
    /// exited, signaled, out_of_memory, limit_exceeded, killed or timeout.
    reason: &'a str,
    signal: Option<i32>,
    duration_ms: u64,
    /// A stream was longer than what is kept.
    truncated: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    limits_hit: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Only with `run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox_deleted: Option<bool>,
}

/// Tells how a command ended, and gives the exit status for it.
pub(crate) fn conclude(
    session: &Session<'_>,
    id: &str,
    ending: &Ending,
    output: &GuestOutput,
    sandbox_deleted: Option<bool>,
) -> Result<u8, CommandError> {
    let denials = ending.denials.as_ref();
    let hint = denials.map(|denials| denials.text(id, sandbox_deleted == Some(true)));
    match output {
        GuestOutput::Live => conclude_live(session, ending, hint),
        GuestOutput::Kept(kept) => {
            let report = Report {
                hint,
                sandbox_deleted,
                ..report(id, ending, kept)
            };
            session.printer.json(&report)?;
            Ok(exit_status::of_ending(&ending.exit))
        }
    }
}

fn conclude_live(
    session: &Session<'_>,
    ending: &Ending,
    hint: Option<String>,
) -> Result<u8, CommandError> {
    let exit = &ending.exit;
    match exit.reason.as_str() {
        "timed_out" => return Err(CommandError::TimedOut),
        "out_of_memory" => session
            .printer
            .note("the command was killed: the sandbox is out of memory"),
        "limit_exceeded" => {
            let limits = exit.limits_hit.join(", ");
            let text = format!("the command was killed: over its limit of {limits}");
            session.printer.note(&text);
        }
        _ => {}
    }
    if let Some(hint) = hint {
        session.printer.note(&hint);
    }
    Ok(exit_status::of_ending(exit))
}

fn report<'a>(id: &'a str, ending: &'a Ending, kept: &'a KeptOutput) -> Report<'a> {
    let exit = &ending.exit;
    let is_late = exit.reason == "timed_out";
    Report {
        sandbox_id: id,
        stdout: String::from_utf8_lossy(&kept.stdout),
        stderr: String::from_utf8_lossy(&kept.stderr),
        exit_code: if is_late {
            i32::from(exit_status::TIMED_OUT)
        } else {
            exit.exit_code
        },
        reason: if is_late { "timeout" } else { &exit.reason },
        signal: exit.signal.filter(|_| !is_late),
        duration_ms: if is_late {
            u64::try_from(ending.elapsed.as_millis()).unwrap_or(u64::MAX)
        } else {
            exit.duration_ms
        },
        truncated: kept.is_truncated,
        limits_hit: &exit.limits_hit,
        hint: None,
        sandbox_deleted: None,
    }
}
