//! What `dayfly-jail` writes to its standard output, once, as JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::process::ProcessIdentity;

/// The most that a report may take.
pub const REPORT_BYTES_MAX: u64 = 64 * 1024;

/// How a launch went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum JailReport {
    /// The engine's program has replaced the launcher's.
    Started { identity: ProcessIdentity },
    /// Nothing runs.
    Failed {
        step: JailStep,
        /// What it was done to.
        detail: String,
        errno: Option<i32>,
    },
}

/// The steps of a launch, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JailStep {
    Prepare,
    ReadSpec,
    JoinCgroup,
    EnterNetwork,
    Unshare,
    MountRoot,
    MountDevices,
    Bind,
    Pivot,
    SetHostname,
    Fork,
    SetLimits,
    DropPrivileges,
    Filter,
    Execute,
}

impl fmt::Display for JailStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prepare => "prepare",
            Self::ReadSpec => "read the specification",
            Self::JoinCgroup => "join a control group",
            Self::EnterNetwork => "enter the network namespace",
            Self::Unshare => "make namespaces",
            Self::MountRoot => "mount the root",
            Self::MountDevices => "mount the devices",
            Self::Bind => "bind a mount",
            Self::Pivot => "change the root",
            Self::SetHostname => "set the host name",
            Self::Fork => "fork",
            Self::SetLimits => "set limits",
            Self::DropPrivileges => "drop privileges",
            Self::Filter => "filter system calls",
            Self::Execute => "execute the engine",
        })
    }
}
