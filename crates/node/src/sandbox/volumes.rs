//! The volumes of one sandbox: leases on the host, mounts in the guest.

use std::sync::Arc;
use std::time::Duration;

use dayfly_guest_client::{AgentClient, CallError, DiskMount};
use dayfly_guest_proto::GuestErrorCode;
use dayfly_node_api::NodeError;
use dayfly_types::{ErrorCode, ProjectId, SandboxId};

use super::bring_up::Origin;
use super::owner::Owner;
use crate::effects::Effect;
use crate::volumes::VolumeStore;

/// How long a guest has to unmount its volumes before it is deleted.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);

impl Owner {
    /// Puts the volumes that the record names into the machine that is about to be restored.
    ///
    /// # Errors
    /// `volume_busy` when a lease does not hold any more.
    pub(super) async fn add_volumes(
        &self,
        origin: &mut Origin,
        are_mounted: bool,
    ) -> Result<(), NodeError> {
        let record = &self.record;
        for volume in &record.volumes {
            let (name, fence) = (volume.mount.name.clone(), volume.fence);
            let resume = move |volumes: &VolumeStore, project: &ProjectId, id: &SandboxId| {
                volumes.resume(project, &name, id, fence)
            };
            let lease = self.on_volumes(resume).await?;
            origin.attach(volume, lease, are_mounted);
        }
        Ok(())
    }

    /// Takes the lease of each volume that the record names. When one cannot be had, the creation
    /// ends, and its end gives back those before it.
    ///
    /// # Errors
    /// `volume_busy` names who has it.
    pub(super) async fn attach_volumes(&mut self, origin: &mut Origin) -> Result<(), NodeError> {
        for index in 0..self.record.volumes.len() {
            let mount = self.record.volumes[index].mount.clone();
            let attach = move |volumes: &VolumeStore, project: &ProjectId, id: &SandboxId| {
                volumes.attach(project, &mount.name, id, mount.read_only)
            };
            let lease = self.on_volumes(attach).await?;
            let volume = &mut self.record.volumes[index];
            volume.fence = lease.fence;
            origin.attach(volume, lease, false);
        }
        Ok(())
    }

    /// Does something to the volumes of this sandbox, behind what was begun before.
    async fn on_volumes<T: Send + 'static>(
        &self,
        work: impl FnOnce(&VolumeStore, &ProjectId, &SandboxId) -> T + Send + 'static,
    ) -> T {
        let volumes = Arc::clone(&self.parts.volumes);
        let (project, id) = (self.record.project.clone(), self.record.id.clone());
        self.disk.run(move || work(&volumes, &project, &id)).await
    }

    /// Unmounts every volume, so that no copy carries a file system whose disk moves on. All or
    /// none: when one is busy, those before it are mounted again.
    pub(super) async fn unmount_volumes(&mut self, agent: &AgentClient) -> Result<(), NodeError> {
        for volume in self.record.volumes.clone() {
            let unmounted = agent.unmount_volume(&volume.mount.path);
            let effects = &self.parts.effects;
            let Err(error) = effects.around_async(Effect::GuestUnmount, unmounted).await else {
                continue;
            };
            self.mount_volumes(agent).await?;
            let is_busy = matches!(
                &error,
                CallError::Refused(refusal) if refusal.code == GuestErrorCode::Busy
            );
            let name = &volume.mount.name;
            let text = if is_busy {
                format!(
                    "volume {name} is in use in the guest and cannot be unmounted for the capture; \
                     close its files and leave its directories first"
                )
            } else {
                format!("volume {name} could not be unmounted for the capture: {error}")
            };
            return Err(NodeError::new(ErrorCode::VolumeBusy, text));
        }
        Ok(())
    }

    pub(super) async fn mount_volumes(&mut self, agent: &AgentClient) -> Result<(), NodeError> {
        for volume in &self.record.volumes {
            let mount = DiskMount {
                serial: format!("spare{}", volume.spare),
                path: volume.mount.path.clone(),
                read_only: volume.mount.read_only,
                expect_bytes: None,
            };
            let mounted = agent.mount_volume(mount);
            let mounted = self.parts.effects.around_async(Effect::GuestMount, mounted);
            mounted.await.map_err(|error| {
                let name = &volume.mount.name;
                let text = format!("volume {name} could not be mounted again: {error}");
                NodeError::new(ErrorCode::GuestUnavailable, text)
            })?;
        }
        Ok(())
    }

    /// Asks the guest to unmount before its machine ends, so that its file systems are left clean.
    /// A guest that does not is not waited for: a journal is made for that.
    pub(super) async fn leave_volumes(&self) {
        let Some(agent) = self.agent.clone().filter(|_| !self.room.is_waiting()) else {
            return;
        };
        let leave = async {
            for volume in &self.record.volumes {
                let unmounted = agent.unmount_volume(&volume.mount.path);
                let effects = &self.parts.effects;
                let unmounted = effects.around_async(Effect::GuestUnmount, unmounted);
                let _ = unmounted.await;
            }
        };
        let _ = tokio::time::timeout(LEAVE_LIMIT, leave).await;
    }

    /// Gives the leases back. The engine is dead. `false`: try again later.
    pub(super) async fn release_volumes(&self) -> bool {
        let record = &self.record;
        for volume in &record.volumes {
            let name = volume.mount.name.clone();
            let detach = move |volumes: &VolumeStore, project: &ProjectId, id: &SandboxId| {
                volumes.detach(project, &name, id)
            };
            if let Err(error) = self.on_volumes(detach).await {
                let (name, error) = (&volume.mount.name, crate::error_chain(&error));
                tracing::error!(sandbox_id = %record.id, volume = %name, error, "cannot detach");
                return false;
            }
        }
        true
    }
}
