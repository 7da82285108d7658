//! Why a visitor was not let through.

use std::time::Duration;

use dayfly_node_api::NodeError;

use crate::admission::limit::TooMany;
use crate::store::StoreError;

/// Why a request did not reach a service, or its answer not the visitor.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    #[error("{what}")]
    Malformed { what: &'static str },
    /// No such sandbox, or the visitor may not know of it: the two look the same from outside.
    #[error("there is nothing here, or it is not open to you")]
    Closed,
    #[error("a service in a sandbox cannot be asked for a tunnel")]
    Connect,
    #[error(transparent)]
    TooMany(#[from] TooMany),
    #[error("nothing listens on port {port} in the sandbox")]
    NothingListens { port: u16 },
    #[error("timeout: the service in the sandbox did not accept the connection within {} s", limit.as_secs())]
    ConnectTimedOut { limit: Duration },
    #[error("timeout: no byte came from the service in the sandbox for {} s", limit.as_secs())]
    Idle { limit: Duration },
    #[error("the service in the sandbox did not answer with HTTP")]
    NoAnswer,
    #[error("the server is stopping")]
    Stopping,
    #[error("the node did not connect to the sandbox")]
    Node(#[from] NodeError),
    #[error("cannot look up who may visit")]
    Store(#[from] StoreError),
}
