//! What can be asked of an owner.

use std::sync::Arc;
use std::time::SystemTime;

use dayfly_node_api::{
    LifecycleChange, LifecycleReport, NetworkReport, NodeError, SandboxReport, SetNetwork,
};
use dayfly_snapshots::capture::{CaptureManifest, CapturePurpose};
use dayfly_types::SnapshotId;
use dayfly_vmm::GivenBack;
use tokio::sync::oneshot;

use super::ForkSource;

/// Where an answer goes. A caller that stopped waiting does not stop the work.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, NodeError>>;

/// A capture that somebody wants.
#[derive(Debug, Clone)]
pub(crate) struct CaptureWish {
    pub(crate) id: SnapshotId,
    pub(crate) purpose: CapturePurpose,
    pub(crate) name: Option<String>,
    pub(crate) expires_at: Option<SystemTime>,
}

/// One request.
#[derive(Debug)]
pub(crate) enum Request {
    /// Answered once nothing of the sandbox is left.
    Delete {
        done: oneshot::Sender<()>,
    },
    Pause(Reply<SandboxReport>),
    Resume(Reply<SandboxReport>),
    Hibernate(Reply<SandboxReport>),
    /// Sleeps for others, unless it is used; says whether it does.
    SleepForOthers(Reply<bool>),
    /// Gives memory that the guest has freed back to the host. `None`: this machine cannot.
    GiveBack(Reply<Option<GivenBack>>),
    Wake(Reply<SandboxReport>),
    Rollback {
        to: SnapshotId,
        reply: Reply<SandboxReport>,
    },
    Capture {
        wish: CaptureWish,
        reply: Reply<Arc<CaptureManifest>>,
    },
    ForkCapture {
        wish: CaptureWish,
        reply: Reply<ForkSource>,
    },
    SetNetwork {
        wanted: SetNetwork,
        reply: Reply<NetworkReport>,
    },
    Network(Reply<NetworkReport>),
    /// Says again how it is: something that it needs may be there again.
    LookAgain,
    SetLifecycle {
        change: LifecycleChange,
        reply: Reply<LifecycleReport>,
    },
}
