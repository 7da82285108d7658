//! Execs by their id, without reading them, and sockets of the guest.

use dayfly_guest_proto::{Request, Response};
use dayfly_types::ExecId;
use dayfly_types::exec::{ExecInfo, WindowSize};
use dayfly_types::limits::{EXECS_KEPT_MAX, EXECS_MAX};

use crate::client::AgentClient;
use crate::error::CallError;

/// How many execs one answer holds.
const PAGE_EXECS: u32 = 100;

impl AgentClient {
    /// What the guest knows of an exec.
    ///
    /// # Errors
    /// [`CallError::Refused`] when it does not know it.
    pub async fn describe_exec(&self, exec_id: &ExecId) -> Result<ExecInfo, CallError> {
        let exec_id = exec_id.clone();
        let answer = self.call(Request::DescribeExec { exec_id }).await?;
        let Response::Exec(info) = answer else {
            return Err(CallError::UnexpectedAnswer);
        };
        Ok(info)
    }

    /// Every exec that the guest knows, oldest first.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn list_execs(&self) -> Result<Vec<ExecInfo>, CallError> {
        let mut execs: Vec<ExecInfo> = Vec::new();
        loop {
            let after = execs.last().map_or(0, |exec| exec.number);
            let request = Request::ListExecs {
                after,
                limit: PAGE_EXECS,
            };
            let Response::Execs(page) = self.call(request).await? else {
                return Err(CallError::UnexpectedAnswer);
            };
            // Numbers must go up, or a lying guest could keep us here.
            let numbers = page.execs.iter().map(|exec| exec.number);
            let is_sorted = std::iter::once(after)
                .chain(numbers)
                .is_sorted_by(|a, b| a < b);
            let is_over = !page.has_more || page.execs.is_empty();
            execs.extend(page.execs);
            if !is_sorted || execs.len() > EXECS_MAX + EXECS_KEPT_MAX {
                return Err(CallError::UnexpectedAnswer);
            }
            if is_over {
                return Ok(execs);
            }
        }
    }

    /// Sends a signal to the process group of an exec; signal 9 ends all its processes.
    ///
    /// # Errors
    /// [`CallError::Refused`] when there is no such signal or process.
    pub async fn signal_exec(&self, exec_id: &ExecId, signal: i32) -> Result<(), CallError> {
        let exec_id = exec_id.clone();
        self.call_done(Request::SignalProcess { exec_id, signal })
            .await
    }

    /// Tells the terminal of an exec how large it is.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the exec has no terminal.
    pub async fn resize_exec(&self, exec_id: &ExecId, size: WindowSize) -> Result<(), CallError> {
        let exec_id = exec_id.clone();
        self.call_done(Request::ResizeTerminal { exec_id, size })
            .await
    }

    /// Ends an exec and drops its output. One that is not there is a success.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn forget_exec(&self, exec_id: &ExecId) -> Result<(), CallError> {
        let exec_id = exec_id.clone();
        self.call_done(Request::ForgetExec { exec_id }).await
    }
}
