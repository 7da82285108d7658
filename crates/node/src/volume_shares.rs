//! How much the volumes of a node are together, and how many of them one project may have.

use dayfly_types::{ProjectId, VolumeName, limits};

use crate::capacity::VolumeAccount;
use crate::volumes::{VolumeError, VolumeStore};

impl VolumeStore {
    /// A project has a share, so that one alone cannot take all.
    pub(crate) fn check_count(&self, project: &ProjectId) -> Result<(), VolumeError> {
        let records = self.lock();
        if records.len() >= limits::VOLUMES_MAX {
            return Err(VolumeError::TooMany {
                limit: limits::VOLUMES_MAX,
            });
        }
        let own = records.keys().filter(|(owner, _)| owner == project);
        if own.count() >= limits::VOLUMES_OF_PROJECT_MAX {
            return Err(VolumeError::ShareTaken {
                limit: limits::VOLUMES_OF_PROJECT_MAX,
            });
        }
        Ok(())
    }

    /// How large a volume is, if it is there.
    #[must_use]
    pub fn size_mib(&self, project: &ProjectId, name: &VolumeName) -> Option<u64> {
        let key = (project.clone(), name.clone());
        self.lock().get(&key).map(|record| record.size.into())
    }

    /// What all volumes together are promised and have written. Blocks.
    #[must_use]
    pub fn account(&self) -> VolumeAccount {
        let mut account = VolumeAccount::default();
        for volume in self.reports(None) {
            let size = u64::from(volume.size);
            account.promised_mib += size;
            account.used_mib += (volume.used_bytes >> 20).min(size);
        }
        account
    }
}
