//! Services that listen inside a sandbox, as a caller of a node reaches them.

use async_trait::async_trait;
use dayfly_types::SandboxId;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::NodeError;

/// The part of a node that leads into sandboxes.
#[async_trait]
pub trait NodeIngress: Send + Sync {
    /// What listens now. Does not wake the sandbox: one that sleeps has none.
    async fn ports(&self, id: &SandboxId) -> Result<Vec<ListeningPort>, NodeError>;

    /// Connects to a TCP port of the sandbox, and wakes it for that. Who asks has checked that the
    /// caller may.
    async fn connect_port(&self, id: &SandboxId, port: u16) -> Result<PortStream, NodeError>;
}

/// A TCP port on which something in the sandbox listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListeningPort {
    pub port: u16,
    /// The address that it is bound to, as the guest says.
    pub address: String,
}

/// Bytes both ways.
pub trait PortBytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> PortBytes for T {}

/// A connection to a service in a sandbox. Dropping it closes the connection.
pub type PortStream = Box<dyn PortBytes>;

/// What an upgraded connection between control and node carries from then on.
pub(crate) const PROTOCOL: &str = "dayfly-port";
