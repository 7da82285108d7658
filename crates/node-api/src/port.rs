//! Services that listen inside a sandbox.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Which port to wait for, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitPort {
    pub port: u16,
    pub limit: Duration,
}
