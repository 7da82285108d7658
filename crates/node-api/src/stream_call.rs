//! What opens a stream, as it is on the wire.

use dayfly_types::SandboxId;
use serde::{Deserialize, Serialize};

use crate::exec::{AttachExec, EnsureExec, StdinWrite};
use crate::files::{FileRead, FileWrite, GuestPath, WatchFiles};

/// Something that a node answers with a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum NodeStream {
    Watch {},
    Exec {
        id: SandboxId,
        request: Box<EnsureExec>,
    },
    AttachExec {
        id: SandboxId,
        request: AttachExec,
    },
    Context {
        id: SandboxId,
        line: String,
    },
    ReadFile {
        id: SandboxId,
        request: FileRead,
    },
    WatchFiles {
        id: SandboxId,
        request: WatchFiles,
    },
    PackTree {
        id: SandboxId,
        request: GuestPath,
    },
}

/// Something that a node is sent a stream for. It answers how many bytes it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum NodeTransfer {
    WriteStdin { id: SandboxId, request: StdinWrite },
    WriteFile { id: SandboxId, request: FileWrite },
    UnpackTree { id: SandboxId, request: GuestPath },
}

/// What an upgraded connection between control and node carries from then on.
pub(crate) const PORT_PROTOCOL: &str = "dayfly-port";
