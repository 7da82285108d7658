//! Opening a conversation with the agent of a guest.

use std::io;
use std::path::Path;
use std::time::Duration;

use dayfly_guest_client::{AgentClient, ConnectError};
use dayfly_host::unix::connect_unix_within;
use dayfly_vmm::file_names;
use tokio::net::UnixStream;

/// Why the agent cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum OpenAgentError {
    #[error("cannot connect to {socket}")]
    Socket {
        socket: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("the guest agent did not open a conversation")]
    Agent(#[source] ConnectError),
}

/// Connects both ports of the guest in this run directory.
///
/// # Errors
/// [`OpenAgentError`]; no connection is left open.
pub async fn open_agent(run: &Path, limit: Duration) -> Result<AgentClient, OpenAgentError> {
    let control = connect(run, file_names::CONTROL_SOCKET, limit).await?;
    let bulk = connect(run, file_names::BULK_SOCKET, limit).await?;
    AgentClient::connect(control, bulk, limit)
        .await
        .map_err(OpenAgentError::Agent)
}

async fn connect(
    run: &Path,
    socket: &'static str,
    limit: Duration,
) -> Result<UnixStream, OpenAgentError> {
    let fail = |source| OpenAgentError::Socket { socket, source };
    let stream = connect_unix_within(&run.join(socket), limit)
        .await
        .map_err(fail)?;
    stream.set_nonblocking(true).map_err(fail)?;
    UnixStream::from_std(stream).map_err(fail)
}
