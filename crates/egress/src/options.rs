//! What the operator decides for all sandboxes of a node.

use std::net::{SocketAddr, SocketAddrV4};
use std::num::NonZeroU64;

use dayfly_types::egress::InternalNetworks;

/// What the process is told when it starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who is asked for names, in turn. With none, no name has an address.
    pub resolvers: Vec<SocketAddr>,
    /// What one sandbox may send, and as much again receive. None: as much as goes through.
    pub bytes_per_second: Option<NonZeroU64>,
    /// What of private space the operator has opened, and to whom.
    pub internal_networks: InternalNetworks,
    /// The HTTP proxy that connections to public addresses go through, all of them.
    pub proxy: Option<SocketAddrV4>,
}
