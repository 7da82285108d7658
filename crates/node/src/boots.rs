//! Whose turn it is to boot on a disk.
//!
//! A boot keeps a processor busy for as long as it takes, where a restore is over in a moment. Few
//! run at once, and of one project fewer than that. Nobody waits here: who gets no turn is told to
//! ask again, so there is no line that could grow.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dayfly_node_api::NodeError;
use dayfly_types::{ErrorCode, ProjectId, SandboxId, limits};

/// How soon a caller may ask again. A boot takes seconds, and under emulation many.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The sandboxes of a node that boot now.
#[derive(Debug, Default)]
pub(crate) struct Boots(Mutex<BTreeMap<SandboxId, Booting>>);

#[derive(Debug)]
struct Booting {
    project: ProjectId,
    /// Repeats of one call have one turn.
    holders: usize,
}

/// The right to boot, for as long as it lives.
#[derive(Debug)]
pub(crate) struct BootTurn {
    boots: Arc<Boots>,
    id: SandboxId,
}

/// Why a sandbox has to wait with its boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoTurn {
    #[error(
        "the project boots {} sandbox on the disk of a snapshot already, which is the limit; ask \
         again when it runs",
        limits::DISK_BOOTS_OF_PROJECT_MAX
    )]
    Project,
    #[error(
        "this node boots {} sandboxes on the disks of snapshots already, which is the limit; ask \
         again when one of them runs",
        limits::DISK_BOOTS_MAX
    )]
    Node,
}

impl From<NoTurn> for NodeError {
    fn from(error: NoTurn) -> Self {
        Self::new(ErrorCode::NoCapacity, error.to_string()).retry_after(RETRY_AFTER)
    }
}

impl Boots {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SandboxId, Booting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a turn for a sandbox.
    ///
    /// # Errors
    /// [`NoTurn`].
    pub(crate) fn take(
        self: &Arc<Self>,
        project: &ProjectId,
        id: &SandboxId,
    ) -> Result<BootTurn, NoTurn> {
        let mut booting = self.lock();
        if let Some(same) = booting.get_mut(id).filter(|one| one.project == *project) {
            same.holders += 1;
        } else {
            let own = booting.values().filter(|one| one.project == *project);
            if own.count() >= limits::DISK_BOOTS_OF_PROJECT_MAX {
                return Err(NoTurn::Project);
            }
            if booting.len() >= limits::DISK_BOOTS_MAX || booting.contains_key(id) {
                return Err(NoTurn::Node);
            }
            let one = Booting {
                project: project.clone(),
                holders: 1,
            };
            booting.insert(id.clone(), one);
        }
        Ok(BootTurn {
            boots: Arc::clone(self),
            id: id.clone(),
        })
    }
}

impl Drop for BootTurn {
    fn drop(&mut self) {
        let mut booting = self.boots.lock();
        if let Some(one) = booting.get_mut(&self.id) {
            one.holders -= 1;
            if one.holders == 0 {
                booting.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dayfly_types::CellName;

    use super::*;

    fn project(name: &str) -> ProjectId {
        ProjectId::parse(name).unwrap()
    }

    fn sandbox(byte: u8) -> SandboxId {
        SandboxId::from_random(&CellName::local(), [byte; 17])
    }

    #[test]
    fn no_project_keeps_the_others_out_and_few_boot_at_once() {
        let boots = Arc::new(Boots::default());
        let first = boots.take(&project("a"), &sandbox(1)).unwrap();
        let again = boots.take(&project("a"), &sandbox(2)).unwrap_err();
        assert_eq!(again, NoTurn::Project);
        let _second = boots.take(&project("b"), &sandbox(3)).unwrap();
        let third = boots.take(&project("c"), &sandbox(4)).unwrap_err();
        assert_eq!(third, NoTurn::Node);
        let refusal = NodeError::from(third);
        assert_eq!(refusal.code, ErrorCode::NoCapacity);
        drop(first);
        assert!(boots.take(&project("c"), &sandbox(4)).is_ok());
    }

    #[test]
    fn a_repeat_of_one_call_has_the_turn_of_the_first() {
        let boots = Arc::new(Boots::default());
        let first = boots.take(&project("a"), &sandbox(1)).unwrap();
        let repeat = boots.take(&project("a"), &sandbox(1)).unwrap();
        drop(first);
        assert!(boots.take(&project("a"), &sandbox(2)).is_err());
        // An id is one project's; another that uses it has no part in its turn.
        assert!(boots.take(&project("b"), &sandbox(1)).is_err());
        drop(repeat);
        assert!(boots.take(&project("a"), &sandbox(2)).is_ok());
        assert!(boots.lock().is_empty());
    }
}
