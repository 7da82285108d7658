//! What may help whoever reads that a command failed.

use std::sync::Arc;

use dayfly_api::Hint;
use dayfly_types::exec::{ExecExit, ExitReason};
use dayfly_types::{ProjectId, SandboxId};

use crate::control::Control;
use crate::network::denials::denied_since;
use crate::sandbox::read;

/// A command that somebody waits for: whose it is, where it runs, and since when.
pub(crate) struct Awaited {
    pub(crate) control: Arc<Control>,
    pub(crate) project: ProjectId,
    pub(crate) sandbox: SandboxId,
    pub(crate) began_ms: i64,
}

impl Awaited {
    /// Only of what failed: nobody waits for it otherwise.
    pub(crate) async fn hint(&self, exit: &ExecExit) -> Option<Hint> {
        if exit.reason == ExitReason::OutOfMemory {
            return Some(self.out_of_memory().await);
        }
        if exit.code == 0 {
            return None;
        }
        denied_since(&self.control, &self.sandbox, self.began_ms).await
    }

    /// A program that the kernel ends says nothing about it.
    async fn out_of_memory(&self) -> Hint {
        match read::get(&self.control, &self.project, &self.sandbox).await {
            Ok(sandbox) => Hint::OutOfMemory {
                memory_mb: sandbox.memory_mb.to_string(),
            },
            // It is gone meanwhile, which the next call says.
            Err(_) => Hint::NoMemoryLeft,
        }
    }
}
