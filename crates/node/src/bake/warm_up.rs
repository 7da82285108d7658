//! Brings a booted guest into the state that every sandbox starts from.
//!
//! First the context bridge, where there are contexts, and the program that an image of a container
//! is for. Then the recipe's own words: `start` commands
//! are left running, then each `warm` command must succeed, so that a warm command can wait for what
//! was started. Then a rehearsal of what sandboxes do first, twice: its pages and caches are then in
//! the captured memory.

use std::time::Duration;

use bytes::Bytes;
use dayfly_guest_client::{
    AgentClient, CallError, ConversationLost, ExecSession, ListSpec, ReadRange, StreamError,
    WriteSpec,
};
use dayfly_snapshots::{EntryPointUse, ProgressReporter, Recipe};
use dayfly_types::ExecId;
use dayfly_types::container_image::MadeImage;
use dayfly_types::exec::{ExecCommand, ExecExit};
use dayfly_types::exec::{ExecEnd, ExecEvent, ExecSpec};
use dayfly_types::ids::ID_RANDOM_BYTES;

use super::bridge;
use super::entry_point::{self, EntryPoint, NOT_STARTED};

/// Runs its first argument in a session of its own and does not wait for it.
const BACKGROUND_SCRIPT: &str = r#"setsid /bin/sh -c "$1" </dev/null >/dev/null 2>&1 &"#;
/// What sandboxes run first. A program that the image does not have is passed over.
const REHEARSAL: [&str; 3] = [
    "true",
    "! command -v python3 >/dev/null || python3 -c pass",
    "! command -v bash >/dev/null || bash -c true",
];
const REHEARSAL_ROUNDS: usize = 2;
const REHEARSAL_LIMIT: Duration = Duration::from_secs(120);
const REHEARSAL_FILE: &str = ".rehearsal";
/// Where files are first moved to: agents work in the first, and every guest has the second.
const WORKSPACE: &str = "/workspace";
const EVERY_GUEST_HAS: &str = "/tmp";
/// How much of a command's output an error quotes.
const OUTPUT_TAIL_BYTES: usize = 2000;

/// Why the guest is not warm.
#[derive(Debug, thiserror::Error)]
pub enum WarmUpError {
    #[error("no randomness for an exec")]
    Randomness,
    #[error("cannot start {command:?}")]
    Start {
        command: String,
        #[source]
        source: CallError,
    },
    #[error("the guest was lost while {command:?} ran")]
    Lost {
        command: String,
        #[source]
        source: ConversationLost,
    },
    #[error("{command:?} ended with exit code {code}; its output ends with: {output}")]
    Failed {
        command: String,
        code: i32,
        output: String,
    },
    #[error("{command:?} took longer than {limit:?}")]
    TimedOut { command: String, limit: Duration },
    #[error("cannot handle a file in the guest")]
    FileCall(#[source] CallError),
    #[error("cannot move a file's bytes")]
    FileBytes(#[source] StreamError),
}

impl WarmUpError {
    pub(super) fn failed(words: &str, code: i32, output: &[u8]) -> Self {
        let output = String::from_utf8_lossy(output);
        Self::Failed {
            command: words.to_owned(),
            code,
            output: output.trim().escape_debug().to_string(),
        }
    }
}

/// What a guest is warmed up with.
#[derive(Debug, Clone, Copy)]
pub(super) struct WarmUp<'a> {
    pub(super) recipe: &'a Recipe,
    /// What the image of a container says, if there is one.
    pub(super) container: Option<&'a MadeImage>,
}

impl WarmUp<'_> {
    fn entry_point(&self) -> Option<Vec<String>> {
        let is_wanted = self.recipe.entry_point == EntryPointUse::Start;
        let arguments = self.container.map(MadeImage::program);
        arguments.filter(|arguments| is_wanted && !arguments.is_empty())
    }
}

/// Warms the guest up. `limit` holds for each command of the recipe.
pub(super) async fn run(
    agent: &AgentClient,
    what: WarmUp<'_>,
    limit: Duration,
    progress: &ProgressReporter,
) -> Result<(), WarmUpError> {
    let recipe = what.recipe;
    let count = recipe.start.len() + recipe.warm.len() + 1;
    let share = |done: usize| u8::try_from(done * 100 / count).unwrap_or(100);
    let mut done = 0;
    if !recipe.contexts.is_empty() {
        progress.report("installing the context bridge", 0);
        bridge::install(agent).await?;
    }
    let entry_point = match what.entry_point() {
        Some(arguments) => {
            progress.report("starting the entry point", 0);
            Some(EntryPoint::start(agent, &arguments).await?)
        }
        None => None,
    };
    if let Some(health) = what.container.and_then(|image| image.health.as_ref())
        && entry_point.is_some()
    {
        progress.report("waiting until the entry point is ready", 0);
        entry_point::wait_until_ready(agent, health, limit).await?;
    }
    for command in &recipe.start {
        progress.report("starting programs", share(done));
        start(agent, &ExecCommand::Shell(command.clone()), limit).await?;
        done += 1;
    }
    for command in &recipe.warm {
        progress.report("warming up", share(done));
        let shell = ExecCommand::Shell(command.clone());
        finish(agent, shell, command, limit).await?;
        done += 1;
    }
    progress.report("rehearsing", share(done));
    for _ in 0..REHEARSAL_ROUNDS {
        rehearse(agent, what.container.is_some()).await?;
    }
    match entry_point {
        Some(entry_point) => entry_point.check().await,
        None => Ok(()),
    }
}

/// Starts a program that goes on after this, in every sandbox of the template.
pub(crate) async fn start(
    agent: &AgentClient,
    command: &ExecCommand,
    limit: Duration,
) -> Result<(), WarmUpError> {
    let line = match command {
        ExecCommand::Shell(line) => line,
        // A session of its own is what every exec has; it goes on when nobody listens.
        ExecCommand::Argv(arguments) => {
            let words = arguments.join(" ");
            return open(agent, command.clone(), &words, None).await.map(drop);
        }
    };
    let arguments = ["/bin/sh", "-c", BACKGROUND_SCRIPT, "start", line];
    let background = ExecCommand::Argv(arguments.map(str::to_owned).to_vec());
    finish(agent, background, line, limit).await
}

/// The image of a container need not even have a shell.
async fn rehearse(agent: &AgentClient, is_container: bool) -> Result<(), WarmUpError> {
    let passed_over = |result| match result {
        Err(WarmUpError::Failed { code, .. }) if is_container && NOT_STARTED.contains(&code) => {
            Ok(())
        }
        other => other,
    };
    for command in REHEARSAL {
        let shell = ExecCommand::Shell(command.to_owned());
        passed_over(finish(agent, shell, command, REHEARSAL_LIMIT).await)?;
    }
    let plain = ExecCommand::Argv(vec!["true".to_owned()]);
    passed_over(finish(agent, plain, "true", REHEARSAL_LIMIT).await)?;
    let directory = if is_container {
        EVERY_GUEST_HAS
    } else {
        WORKSPACE
    };
    rehearse_files(agent, directory).await
}

/// Moves one file in and out, and leaves none.
async fn rehearse_files(agent: &AgentClient, directory: &str) -> Result<(), WarmUpError> {
    let call = WarmUpError::FileCall;
    let file = format!("{directory}/{REHEARSAL_FILE}");
    let bytes = WarmUpError::FileBytes;
    let options = WriteSpec::default();
    let mut write = agent.write_file(&file, options).await.map_err(call)?;
    write
        .write(Bytes::from_static(b"rehearsal\n"))
        .await
        .map_err(bytes)?;
    write.finish().await.map_err(bytes)?;
    agent.stat(&file, None).await.map_err(call)?;
    let range = ReadRange::default();
    let mut read = agent.read_file(&file, None, range).await.map_err(call)?;
    while read.next().await.map_err(bytes)?.is_some() {}
    agent
        .list_directory(directory, &ListSpec::default())
        .await
        .map_err(call)?;
    agent.remove(&file, None, false).await.map_err(call)
}

/// Runs a command to its end; it must exit with code 0.
pub(super) async fn finish(
    agent: &AgentClient,
    command: ExecCommand,
    words: &str,
    limit: Duration,
) -> Result<(), WarmUpError> {
    let words = || words.to_owned();
    let mut output = Vec::new();
    let running = follow(agent, command, words(), limit, &mut output);
    let exit =
        tokio::time::timeout(limit, running)
            .await
            .map_err(|_| WarmUpError::TimedOut {
                command: words(),
                limit,
            })??;
    if exit.code == 0 {
        return Ok(());
    }
    Err(WarmUpError::failed(&words(), exit.code, &output))
}

/// Starts a command and listens to it. It is nobody's work: no sandbox of the template lists it.
pub(super) async fn open(
    agent: &AgentClient,
    command: ExecCommand,
    words: &str,
    limit: Option<Duration>,
) -> Result<ExecSession, WarmUpError> {
    let mut random = [0; ID_RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|_| WarmUpError::Randomness)?;
    let mut spec = ExecSpec::new(ExecId::from_random(random), command);
    spec.timeout_ms = limit.and_then(|limit| u64::try_from(limit.as_millis()).ok());
    spec.is_service = true;
    let started = agent.exec(spec).await;
    started.map_err(|source| WarmUpError::Start {
        command: words.to_owned(),
        source,
    })
}

async fn follow(
    agent: &AgentClient,
    command: ExecCommand,
    words: String,
    limit: Duration,
    output: &mut Vec<u8>,
) -> Result<ExecExit, WarmUpError> {
    let mut session = open(agent, command, &words, Some(limit)).await?;
    loop {
        let event = session.next().await;
        match event.map_err(|source| WarmUpError::Lost {
            command: words.clone(),
            source,
        })? {
            Some(ExecEvent::Stdout(bytes) | ExecEvent::Stderr(bytes)) => keep_tail(output, &bytes),
            Some(ExecEvent::Gap(_)) => {}
            Some(ExecEvent::Exited(ExecEnd { exit, .. })) => return Ok(exit),
            // The exit is always the last event, so there is no end without one.
            None => {
                return Err(WarmUpError::TimedOut {
                    command: words,
                    limit,
                });
            }
        }
    }
}

pub(super) fn keep_tail(output: &mut Vec<u8>, bytes: &[u8]) {
    output.extend_from_slice(bytes);
    let surplus = output.len().saturating_sub(OUTPUT_TAIL_BYTES);
    output.drain(..surplus);
}
