//! One client over standard input and output.

use dayfly_types::limits::MCP_END_DEADLINE;
use rmcp::ServiceExt as _;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::stdio_pipes;

use crate::server::McpServer;

/// Why a client was not served to its end.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    #[error("the client did not begin a session")]
    Begin(#[source] Box<ServerInitializeError>),
    #[error("the server stopped")]
    Stopped(#[source] tokio::task::JoinError),
}

/// Serves the client until it closes its end or `stop` resolves, then deletes its own sandbox.
///
/// # Errors
/// [`StdioError`].
pub async fn serve(server: McpServer, stop: impl Future<Output = ()>) -> Result<(), StdioError> {
    let outcome = tokio::select! {
        outcome = run(server.clone()) => outcome,
        () = stop => Ok(()),
    };
    // A server that cannot be reached must not keep this process alive.
    let _ = tokio::time::timeout(MCP_END_DEADLINE, server.end()).await;
    outcome
}

async fn run(server: McpServer) -> Result<(), StdioError> {
    let running = match server.serve(stdio_pipes()).await {
        Ok(running) => running,
        // Somebody looked whether the program starts, and left.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(StdioError::Begin(Box::new(error))),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(StdioError::Stopped(error)),
        Ok(_) => Ok(()),
    }
}
