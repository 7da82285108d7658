//! One engine process: watching it, ending it, and what it said before it ended.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dayfly_host::files::open_without_links;
use dayfly_host::process::{Exit, Pidfd, ProcessError, ProcessIdentity};
use dayfly_vmm::{EngineProcess, Slot, VmExit, file_names};
use tokio::time::{sleep, timeout};

use crate::qmp::shortened;

/// How long an engine that closed its monitor may take to end before it counts as alive.
pub(crate) const ENDING_GRACE: Duration = Duration::from_secs(1);

/// How soon a wait that the runtime could not serve is tried again.
const WATCH_PAUSE: Duration = Duration::from_millis(200);

/// The end of the engine's messages that an error quotes.
const LAST_WORDS_BYTES: u64 = 400;

/// A process that this driver started or adopted.
#[derive(Debug)]
pub(crate) struct Watched {
    process: EngineProcess,
    pidfd: Arc<Pidfd>,
    exit: Option<VmExit>,
}

impl Drop for Watched {
    /// Whoever ends the engine from here on, this program is its parent and must collect it.
    fn drop(&mut self) {
        if self.has_ended() {
            return;
        }
        let pidfd = Arc::clone(&self.pidfd);
        // Without a runtime the program is about to end, and its children go to another parent.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // A wait that the runtime cannot serve leaves one entry in a table of processes.
                let _ = pidfd.wait().await;
            });
        }
    }
}

impl Watched {
    pub(crate) fn open(process: EngineProcess) -> Result<Self, ProcessError> {
        let identity = ProcessIdentity {
            pid: process.pid,
            start_time_ticks: process.start_time_ticks,
        };
        Ok(Self {
            process,
            pidfd: Arc::new(Pidfd::open(identity)?),
            exit: None,
        })
    }

    pub(crate) fn process(&self) -> EngineProcess {
        self.process
    }

    /// Resolves when the process has ended. Cancel safe, repeatable.
    pub(crate) async fn wait(&mut self) -> VmExit {
        loop {
            if let Some(exit) = self.exit {
                return exit;
            }
            match self.pidfd.wait().await {
                Ok(exit) => self.exit = Some(vm_exit(exit)),
                // Out of descriptors, most likely. To call the process ended would be a lie.
                Err(error) => {
                    tracing::warn!(pid = self.process.pid, %error, "cannot watch an engine");
                    sleep(WATCH_PAUSE).await;
                }
            }
        }
    }

    /// Whether the process has ended already.
    pub(crate) fn has_ended(&mut self) -> bool {
        if self.exit.is_none() && !self.pidfd.is_alive() {
            self.exit = Some(vm_exit(self.pidfd.reap()));
        }
        self.exit.is_some()
    }

    /// Whether a signal ended the process.
    pub(crate) fn was_killed(&self) -> bool {
        matches!(self.exit, Some(VmExit::Signaled { .. }))
    }

    /// Whether the process ends within `limit`.
    pub(crate) async fn ends_within(&mut self, limit: Duration) -> bool {
        timeout(limit, self.wait()).await.is_ok()
    }

    /// Ends the process and waits until it is gone; `false` when that took longer than `limit`.
    pub(crate) async fn end(&mut self, limit: Duration) -> Result<bool, ProcessError> {
        if self.exit.is_none() {
            self.pidfd.kill()?;
        }
        Ok(self.ends_within(limit).await)
    }
}

fn vm_exit(exit: Exit) -> VmExit {
    match exit {
        Exit::Status(code) => VmExit::Exited { code },
        Exit::Signal(signal) => VmExit::Signaled { signal },
        Exit::Unknown => VmExit::Gone,
    }
}

/// Opens a regular file in a run directory, where the engine may have planted anything.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let reference = File::from(open_without_links(path)?);
    if !reference.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    File::open(format!("/proc/self/fd/{}", reference.as_raw_fd()))
}

/// What the engine wrote last, for the error that tells of its end.
pub(crate) fn last_words(slot: &Slot) -> String {
    let read = || -> io::Result<String> {
        let mut log = open_regular(&slot.run_directory.join(file_names::CONSOLE_LOG))?;
        let start = log.metadata()?.len().saturating_sub(LAST_WORDS_BYTES);
        log.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        log.take(LAST_WORDS_BYTES).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        // Warnings tell of how the machine is meant to be, not of why it ended.
        let lines: Vec<_> = text
            .lines()
            .filter(|line| !line.contains(": warning: "))
            .collect();
        Ok(shortened(lines.join("\n").trim()))
    };
    read()
        .ok()
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| "none".to_owned())
}
