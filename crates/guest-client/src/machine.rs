//! Calls about the guest as a machine: who it is, whether it runs, its disks.

use std::time::Duration;

use dayfly_guest_proto::copy_mark::NONCE_BYTES;
use dayfly_guest_proto::{
    Activity, CopyMark, FreePages, Identified, Identity, Request, Response, Status,
};

use crate::client::AgentClient;
use crate::error::CallError;

/// How a guest is frozen for a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuiesceSpec {
    /// After this long without a thaw the guest goes on by itself, unless it is a copy. Counts
    /// only together with `mark`.
    pub lease: Option<Duration>,
    /// The nonce by which the host finds the guest's copy mark, drawn for this capture.
    pub mark: Option<[u8; NONCE_BYTES]>,
}

/// A volume on one of the guest's spare disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskMount {
    /// The serial of the disk, such as `spare0`.
    pub serial: String,
    pub path: String,
    pub read_only: bool,
    /// The size of the volume, if the disk was something else before.
    pub expect_bytes: Option<u64>,
}

impl AgentClient {
    /// Asks the guest about itself.
    ///
    /// # Errors
    /// [`CallError`] when there is no answer.
    pub async fn status(&self) -> Result<Status, CallError> {
        let Response::Status(status) = self.call(Request::Status).await? else {
            return Err(CallError::UnexpectedAnswer);
        };
        Ok(status)
    }

    /// Makes the guest a sandbox of its own and runs its hooks. May be repeated.
    ///
    /// A hook that fails is no error: it is in the answer.
    ///
    /// # Errors
    /// [`CallError`]; the guest then stays as it was or in quarantine.
    pub async fn identify(&self, identity: Identity) -> Result<Identified, CallError> {
        let wanted = identity.sandbox_id.clone();
        let answer = self.call(Request::Identify(identity)).await?;
        if let Response::Identified(identified) = answer
            && identified.sandbox_id == wanted
        {
            return Ok(identified);
        }
        Err(CallError::UnexpectedAnswer)
    }

    /// Lets user processes run, then serves the calls that waited for it. May be repeated.
    ///
    /// # Errors
    /// [`CallError::Refused`] with `wrong_state` in a quarantined guest without an identity.
    pub async fn thaw(&self) -> Result<(), CallError> {
        let wall_clock_unix_nanos = None;
        self.call_done(Request::Thaw {
            wall_clock_unix_nanos,
        })
        .await
    }

    /// Sets the guest's clock and lets user processes run. May be repeated.
    ///
    /// # Errors
    /// [`CallError::Refused`] with `wrong_state` in a quarantined guest without an identity.
    pub async fn thaw_at(&self, wall_clock_unix_nanos: u64) -> Result<(), CallError> {
        let wall_clock_unix_nanos = Some(wall_clock_unix_nanos);
        self.call_done(Request::Thaw {
            wall_clock_unix_nanos,
        })
        .await
    }

    /// Freezes user processes and syncs disks for a capture. May be repeated.
    ///
    /// This conversation goes on, and may thaw the guest without an identity. Execs and files in
    /// it stand still; calls about them wait in the guest for the thaw, each within its deadline.
    /// In any other conversation, so in every copy, the guest is quarantined, and what was open
    /// here is detached.
    ///
    /// # Errors
    /// [`CallError`]; after a refusal user processes run as before.
    pub async fn quiesce(&self, spec: QuiesceSpec) -> Result<(), CallError> {
        let lease_ms = spec
            .lease
            .map(|lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX));
        let mark = spec.mark.as_ref().map(CopyMark::from_nonce);
        self.call_done(Request::Quiesce { lease_ms, mark }).await
    }

    /// Mounts a volume. May be repeated, and before the first thaw.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the disk does not come or cannot be mounted there.
    pub async fn mount_volume(&self, volume: DiskMount) -> Result<(), CallError> {
        let DiskMount {
            serial,
            path,
            read_only,
            expect_bytes,
        } = volume;
        self.call_done(Request::MountVolume {
            serial,
            path,
            read_only,
            expect_bytes,
        })
        .await
    }

    /// Writes a volume back and lets go of its disk. May be repeated.
    ///
    /// # Errors
    /// [`CallError::Refused`] with `busy` while something in the guest uses it; it stays mounted.
    pub async fn unmount_volume(&self, path: &str) -> Result<(), CallError> {
        let path = path.to_owned();
        self.call_done(Request::UnmountVolume { path }).await
    }

    /// Grows the file system of the writable disk, once the disk itself has grown.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the disk does not reach that size or its file system cannot.
    pub async fn grow_disk(&self, expect_bytes: u64) -> Result<(), CallError> {
        self.call_done(Request::GrowDisk { expect_bytes }).await
    }

    /// Asks what keeps the guest busy.
    ///
    /// # Errors
    /// [`CallError`] when there is no answer.
    pub async fn activity(&self) -> Result<Activity, CallError> {
        let Response::Activity(activity) = self.call(Request::Activity).await? else {
            return Err(CallError::UnexpectedAnswer);
        };
        Ok(activity)
    }

    /// Asks how many bytes of the guest's memory nobody uses.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the agent is too old for it.
    pub async fn free_memory(&self) -> Result<u64, CallError> {
        let Response::FreeMemory { bytes } = self.call(Request::FreeMemory).await? else {
            return Err(CallError::UnexpectedAnswer);
        };
        Ok(bytes)
    }

    /// Asks which page frames are free. What comes is what the guest says: no range need be one
    /// that it has, and they need not be in order.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the agent is too old for it; [`CallError::UnexpectedAnswer`] when
    /// it tells more than it was asked for.
    pub async fn free_pages(
        &self,
        block_pages: u32,
        ranges_max: u32,
    ) -> Result<Vec<FreePages>, CallError> {
        let request = Request::ListFreePages {
            block_pages,
            ranges_max,
        };
        let Response::FreePages { ranges } = self.call(request).await? else {
            return Err(CallError::UnexpectedAnswer);
        };
        if ranges.len() as u64 > u64::from(ranges_max) {
            return Err(CallError::UnexpectedAnswer);
        }
        Ok(ranges)
    }
}
