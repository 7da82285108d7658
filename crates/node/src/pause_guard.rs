//! A process beside this one that lets an engine run again when this one dies while it is paused.
//!
//! A guest that is frozen thaws by its own lease, but a stopped engine has no clock to end a lease
//! by. So before an engine is stopped a small process is started that waits for the end of its
//! standard input. When that comes without a word, this process is gone, and it resumes the engine.

use std::path::PathBuf;
use std::process::Stdio;

use dayfly_vmm::{EngineProcess, Slot};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};

/// What the guard is told when all is well.
pub const ALL_IS_WELL: u8 = b'.';

/// How a guard is started.
#[derive(Debug, Clone, Default)]
pub struct PauseGuard {
    /// A program and its first arguments; behind them come the slot's number, the run directory,
    /// the engine's pid and its start time. `None`: engines are not guarded.
    command: Option<(PathBuf, Vec<String>)>,
}

/// A guard at work. Dropping it means that all went wrong.
#[derive(Debug)]
pub struct Watching(Option<(Child, ChildStdin)>);

impl PauseGuard {
    #[must_use]
    pub fn new(program: PathBuf, arguments: Vec<String>) -> Self {
        Self {
            command: Some((program, arguments)),
        }
    }

    /// Starts a guard for the engine in a slot. Without one the capture goes on all the same: the
    /// guard is for the moment in which this process dies.
    pub(crate) fn watch(&self, slot: &Slot, process: EngineProcess) -> Watching {
        let Some((program, arguments)) = &self.command else {
            return Watching(None);
        };
        let started = Command::new(program)
            .args(arguments)
            .arg(slot.index.0.to_string())
            .arg(&slot.run_directory)
            .arg(process.pid.to_string())
            .arg(process.start_time_ticks.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match started {
            Ok(mut child) => Watching(child.stdin.take().map(|stdin| (child, stdin))),
            Err(error) => {
                tracing::warn!(%error, "cannot start a pause guard");
                Watching(None)
            }
        }
    }
}

impl Watching {
    /// Tells the guard that the engine runs, or is to stay as it is.
    pub(crate) async fn release(self) {
        let Some((mut child, mut stdin)) = self.0 else {
            return;
        };
        // A guard that is gone needs no word.
        let _ = stdin.write_all(&[ALL_IS_WELL]).await;
        drop(stdin);
        tokio::spawn(async move {
            let _ = child.wait().await;
        });
    }
}
