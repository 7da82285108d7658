//! Services that listen inside a sandbox, as a caller of a node reaches them.

use async_trait::async_trait;
use dayfly_types::SandboxId;
use dayfly_types::port::Listener;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::NodeError;

/// The part of a node that leads into sandboxes.
#[async_trait]
pub trait NodeIngress: Send + Sync {
    /// What listens now. Does not wake the sandbox: one that sleeps has none.
    async fn ports(&self, id: &SandboxId) -> Result<Vec<Listener>, NodeError>;

    /// Connects to a TCP port of the sandbox, and wakes it for that. Who asks has checked that the
    /// caller may.
    async fn connect_port(&self, id: &SandboxId, port: u16) -> Result<PortStream, NodeError>;
}

/// Bytes both ways.
pub trait PortBytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> PortBytes for T {}

/// A connection to a service in a sandbox. Dropping it closes the connection.
pub type PortStream = Box<dyn PortBytes>;

/// What an upgraded connection between control and node carries from then on.
pub(crate) const PROTOCOL: &str = "dayfly-port";
