//! Waiting until something in a sandbox listens.

use std::time::Duration;

use dayfly_api::{Port, WaitForPort};
use dayfly_node_api::{NodeCalls, NodeError, WaitPort};
use dayfly_types::limits::{PORT_WAIT_MS_DEFAULT, PORT_WAIT_MS_MAX};
use dayfly_types::{ErrorCode, ProjectId, SandboxId};

use super::links::present_port;
use crate::admission::limit::TooMany;
use crate::control::Control;
use crate::gateway::ApiAddress;
use crate::input::Invalid;
use crate::sandbox::read::{FindError, gone, locate};

/// Why a port was not waited for to the end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WaitPortError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// The node says for how long.
    #[error("nothing listens on the port")]
    NothingListens(#[source] NodeError),
    #[error("the node cannot wait for the port")]
    Node(#[from] NodeError),
}

/// Waits as long as the caller wants to. It is use of the sandbox, as a command is: one that sleeps
/// is woken, and one that waits does not fall asleep.
///
/// # Errors
/// [`WaitPortError`].
pub(crate) async fn wait(
    control: &Control,
    project: &ProjectId,
    (id, port): (&SandboxId, u16),
    wish: WaitForPort,
    api: &ApiAddress,
) -> Result<Port, WaitPortError> {
    let milliseconds = wish.timeout_ms.unwrap_or(PORT_WAIT_MS_DEFAULT);
    if milliseconds > PORT_WAIT_MS_MAX {
        let reason = format!("must be from 0 to {PORT_WAIT_MS_MAX}");
        return Err(Invalid::field("timeout_ms", reason).into());
    }
    locate(control, project, id).await?;
    // A wait costs the server what a command does: a request that stays.
    let _place = control.limits.exec(project)?;
    let request = WaitPort {
        port,
        limit: Duration::from_millis(milliseconds),
    };
    match control.node.wait_port(id, request).await {
        Ok(found) => Ok(present_port(control, id, found, api)),
        Err(error) => Err(broken_off(control, project, id, error).await),
    }
}

/// A wait that ended with its sandbox says how that ended.
async fn broken_off(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
    error: NodeError,
) -> WaitPortError {
    if error.code == ErrorCode::Timeout {
        return WaitPortError::NothingListens(error);
    }
    let may_be_gone = matches!(
        error.code,
        ErrorCode::GuestUnavailable | ErrorCode::NotFound | ErrorCode::WrongState
    );
    let gone = if may_be_gone {
        gone(control, project, id).await
    } else {
        None
    };
    gone.map_or(WaitPortError::Node(error), WaitPortError::Find)
}
