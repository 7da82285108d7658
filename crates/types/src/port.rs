//! Services of a guest.

use serde::{Deserialize, Serialize};

/// A TCP port on which something in the guest listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Listener {
    pub port: u16,
    /// The address that it is bound to, as the guest says.
    pub address: String,
}
