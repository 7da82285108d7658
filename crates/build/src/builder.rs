//! The sandbox in which the steps of a stage run.

use std::collections::BTreeMap;
use std::time::Duration;

use dayfly_api::{ChangeLifecycle, Command, CreateSandbox, CreateSnapshot, ExecRequest, FileEntry};
use dayfly_client::{Client, ClientError, CommandEvent, FileBody, RemoveOptions};
use dayfly_types::ErrorCode;
use tokio::task::JoinHandle;

use crate::build::BuildWish;
use crate::error::BuildError;
use crate::event::{BuildEvent, Listener};
use crate::place::Place;

/// A builder whose build has gone ends by itself after this long, whatever runs in it: the build gives it
/// more time again and again while it goes on.
const LEASE_SECONDS: u64 = 120;
const RENEWAL: Duration = Duration::from_secs(20);
/// How long one in which a step failed can be looked at.
const DEBUG_SECONDS: u64 = 600;
/// What a RUN may take.
const STEP_SECONDS: f64 = 4.0 * 3600.0;
/// How long the cache of a step lasts. A build that uses it does not make that longer.
const CACHE_SECONDS: u64 = 14 * 24 * 3600;
/// Of the end of what a step said.
const TAIL_LINES: usize = 20;
const LINE_BYTES_MAX: usize = 4096;
/// Whose label tells what a sandbox is for.
const LABEL: &str = "dayfly-build";
pub(crate) const ROOT: &str = "0";

/// A sandbox of a build. It has to be ended by whoever has it; otherwise it ends by itself later.
#[derive(Debug)]
pub(crate) struct Builder<'a> {
    client: &'a Client,
    pub(crate) sandbox: String,
    lease: Lease,
}

/// Gives a sandbox more time for as long as it lives.
#[derive(Debug)]
struct Lease(JoinHandle<()>);

impl Lease {
    fn take(client: &Client, sandbox: &str) -> Self {
        let (client, sandbox) = (client.clone(), sandbox.to_owned());
        Self(tokio::spawn(async move {
            loop {
                tokio::time::sleep(RENEWAL).await;
                // What fails once is tried again before the time is over.
                let _ = client.set_lifecycle(&sandbox, &lives(LEASE_SECONDS)).await;
            }
        }))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn lives(seconds: u64) -> ChangeLifecycle {
    ChangeLifecycle {
        ttl_seconds: Some(Some(seconds)),
        ..ChangeLifecycle::default()
    }
}

/// A command of a step.
#[derive(Debug, Clone, Default)]
pub(crate) struct StepCommand {
    pub(crate) words: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) user: Option<String>,
    pub(crate) directory: Option<String>,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit_code: i32,
    pub(crate) tail: Vec<String>,
}

impl Ended {
    /// Of what is no command.
    pub(crate) const fn well() -> Self {
        Self {
            exit_code: 0,
            tail: Vec::new(),
        }
    }
}

impl<'a> Builder<'a> {
    /// Starts one; `request` says from what.
    pub(crate) async fn start(
        client: &'a Client,
        wish: &BuildWish,
        request: CreateSandbox,
    ) -> Result<Self, BuildError> {
        let request = CreateSandbox {
            metadata: Some([(LABEL.to_owned(), wish.name.clone())].into()),
            ttl_seconds: Some(LEASE_SECONDS),
            network: wish.network.clone(),
            ..request
        };
        let created = client.create_when_ready(&request, |_| {}).await;
        let sandbox = created.map_err(BuildError::call("start a builder"))?.id;
        let lease = Lease::take(client, &sandbox);
        Ok(Self {
            client,
            sandbox,
            lease,
        })
    }

    /// Leaves it for a while, so that somebody can look at it.
    pub(crate) async fn leave(self) {
        let Self {
            client,
            sandbox,
            lease,
        } = self;
        drop(lease);
        let _ = client.set_lifecycle(&sandbox, &lives(DEBUG_SECONDS)).await;
    }

    /// Ends it. A failure is left to its time to live.
    pub(crate) async fn end(self) {
        let _ = self.client.delete_sandbox(&self.sandbox).await;
    }

    /// Runs a command to its end, and tells what it says.
    pub(crate) async fn run(
        &self,
        command: &StepCommand,
        tell: Listener<'_>,
    ) -> Result<Ended, BuildError> {
        let request = ExecRequest {
            cwd: command.directory.clone(),
            env: Some(command.environment.clone()),
            user: Some(command.user.clone().unwrap_or_else(|| ROOT.to_owned())),
            timeout_seconds: Some(STEP_SECONDS),
            ..ExecRequest::new(Command::Argv(command.words.clone()))
        };
        let what = "run a step";
        let stream = self.client.exec_stream(&self.sandbox, &request).await;
        let mut stream = stream.map_err(BuildError::call(what))?;
        let (mut out, mut err) = (Lines::new(false), Lines::new(true));
        let mut tail = Vec::new();
        loop {
            let event = stream.next().await.map_err(BuildError::call(what))?;
            match event {
                Some(CommandEvent::Stdout(text)) => out.push(&text, &mut tail, tell),
                Some(CommandEvent::Stderr(text)) => err.push(&text, &mut tail, tell),
                Some(CommandEvent::Exit(exit)) => {
                    out.finish(&mut tail, tell);
                    err.finish(&mut tail, tell);
                    let exit_code = exit.exit_code;
                    return Ok(Ended { exit_code, tail });
                }
                None => {
                    return Ok(Ended {
                        exit_code: -1,
                        tail,
                    });
                }
            }
        }
    }

    /// Runs a command of ours as root, which must succeed.
    pub(crate) async fn must(&self, line: usize, words: &[&str]) -> Result<(), BuildError> {
        let command = StepCommand {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            directory: Some("/".to_owned()),
            ..StepCommand::default()
        };
        let ended = self.run(&command, &mut |_| {}).await?;
        if ended.exit_code == 0 {
            return Ok(());
        }
        let said = ended.tail.join(" ");
        let what = format!("`{}` failed in the image: {said}", words.join(" "));
        Err(BuildError::Unsupported { line, what })
    }

    /// Unpacks an archive below a directory, which is made if it is not there.
    pub(crate) async fn unpack(&self, path: &str, archive: FileBody) -> Result<(), BuildError> {
        let unpacked = self
            .client
            .upload_tree(&self.sandbox, path, Some(ROOT), archive);
        unpacked
            .await
            .map_err(BuildError::call("copy files into the builder"))?;
        Ok(())
    }

    /// What is at a path.
    pub(crate) async fn place(&self, path: &str) -> Result<Place, BuildError> {
        self.place_in(&self.sandbox, path).await
    }

    /// What is at a path of any sandbox of the build.
    pub(crate) async fn place_in(&self, sandbox: &str, path: &str) -> Result<Place, BuildError> {
        let looked = |result: Result<FileEntry, ClientError>| match result {
            Ok(entry) => Ok(Some(entry)),
            Err(error) if error.api_code() == Some(ErrorCode::NotFound) => Ok(None),
            Err(source) => Err(BuildError::Call {
                what: "look at a path of a builder",
                source,
            }),
        };
        let found = self.client.stat_as(sandbox, path, Some(ROOT)).await;
        let Some(entry) = looked(found)? else {
            return Ok(Place::Nothing);
        };
        if !entry.is_symlink {
            return Ok(if entry.is_dir {
                Place::Directory
            } else {
                Place::File
            });
        }
        // The guest follows the link on the way to what is in it.
        let inside = format!("{path}/.");
        match self.client.stat_as(sandbox, &inside, Some(ROOT)).await {
            Err(error) if error.api_code() == Some(ErrorCode::InvalidRequest) => Ok(Place::Link),
            found => Ok(looked(found)?.map_or(Place::Link, |_| Place::Directory)),
        }
    }

    /// Removes what is empty; what has something in it by now stays.
    pub(crate) async fn remove_unused(&self, path: &str) -> Result<(), BuildError> {
        let options = RemoveOptions {
            user: Some(ROOT.to_owned()),
            ..RemoveOptions::default()
        };
        match self.client.remove_file(&self.sandbox, path, &options).await {
            Ok(()) => Ok(()),
            Err(error)
                if matches!(
                    error.api_code(),
                    Some(ErrorCode::NotFound | ErrorCode::InvalidRequest)
                ) =>
            {
                Ok(())
            }
            Err(source) => Err(BuildError::call("remove what was mounted on")(source)),
        }
    }

    pub(crate) fn client(&self) -> &Client {
        self.client
    }

    /// Keeps what is there now under a name. Another build may have been first, with the same. What
    /// an earlier build kept under it goes if this one was to do everything anew: the next build
    /// begins with what this one made.
    pub(crate) async fn keep(&self, name: &str, is_fresh: bool) -> Result<(), BuildError> {
        let request = CreateSnapshot {
            name: Some(name.to_owned()),
            retain_seconds: Some(CACHE_SECONDS),
        };
        let failed = BuildError::call("keep a step");
        let is_there = |error: &ClientError| error.api_code() == Some(ErrorCode::AlreadyExists);
        let keep = || self.client.create_snapshot(&self.sandbox, &request);
        match keep().await {
            Ok(_) => Ok(()),
            Err(error) if is_there(&error) && is_fresh => {
                self.forget(name).await?;
                match keep().await {
                    // Of another build, which was done since.
                    Err(error) if is_there(&error) => Ok(()),
                    kept => kept.map(drop).map_err(failed),
                }
            }
            Err(error) if is_there(&error) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    async fn forget(&self, name: &str) -> Result<(), BuildError> {
        let removed = self.client.delete_snapshot(name).await;
        removed.map_err(BuildError::call("remove what an earlier build kept"))
    }
}

/// Cuts what comes in pieces into lines.
struct Lines {
    open: String,
    is_error: bool,
}

impl Lines {
    fn new(is_error: bool) -> Self {
        Self {
            open: String::new(),
            is_error,
        }
    }

    fn push(
        &mut self,
        text: &str,
        tail: &mut Vec<String>,
        tell: &mut (dyn FnMut(BuildEvent) + Send),
    ) {
        for piece in text.split_inclusive('\n') {
            self.open.push_str(piece);
            if piece.ends_with('\n') || self.open.len() >= LINE_BYTES_MAX {
                self.finish(tail, tell);
            }
        }
    }

    fn finish(&mut self, tail: &mut Vec<String>, tell: &mut (dyn FnMut(BuildEvent) + Send)) {
        if self.open.is_empty() {
            return;
        }
        let line = std::mem::take(&mut self.open);
        let text = shown(line.trim_end_matches(['\n', '\r']));
        if tail.len() >= TAIL_LINES {
            tail.remove(0);
        }
        tail.push(text.clone());
        let is_error = self.is_error;
        tell(BuildEvent::Output { text, is_error });
    }
}

/// What a stranger's program says goes to people's terminals.
fn shown(line: &str) -> String {
    let is_shown = |letter: &char| *letter == '\t' || !letter.is_control();
    line.chars().filter(is_shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_lines() {
        let mut told = Vec::new();
        let mut tail = Vec::new();
        let mut lines = Lines::new(false);
        {
            let mut tell = |event: BuildEvent| told.push(event);
            lines.push("a\nb", &mut tail, &mut tell);
            lines.push("c\r\n\u{1b}[31md", &mut tail, &mut tell);
            lines.finish(&mut tail, &mut tell);
        }
        assert_eq!(tail, ["a", "bc", "[31md"]);
        assert_eq!(told.len(), 3);
    }
}
