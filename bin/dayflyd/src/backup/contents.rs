//! What a backup says of itself.

use serde::{Deserialize, Serialize};

/// What is in a backup, and what is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Contents {
    /// Whose it is: the name that an installation goes by on its host.
    pub(crate) instance: String,
    pub(crate) snapshots: usize,
    pub(crate) sleepers: Vec<String>,
    /// Sandboxes whose records could not be read; they are in it as they are.
    pub(crate) unreadable: Vec<String>,
    pub(crate) volumes: Vec<CopiedVolume>,
    /// Sandboxes that did not sleep.
    pub(crate) left_out: Vec<LeftOut>,
}

/// One volume, and what its copy is worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopiedVolume {
    pub(crate) project: String,
    pub(crate) name: String,
    pub(crate) state: VolumeState,
}

/// What a volume was when it was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VolumeState {
    /// Nobody wrote to it.
    AtRest,
    /// Its writer sleeps, and is in the backup.
    WithSleeper,
    /// Its writer ran: as after a power cut, which its file system is made for.
    CrashConsistent,
}

/// A sandbox that is not in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftOut {
    pub(crate) sandbox: String,
    pub(crate) why: String,
}

impl Contents {
    /// What a person should know of it, a line each.
    pub(crate) fn remarks(&self) -> String {
        let mut text = String::new();
        if !self.left_out.is_empty() {
            let count = self.left_out.len();
            text.push_str(&format!(
                "{count} sandboxes that did not sleep are not in it; hibernate what should be\n"
            ));
        }
        for volume in &self.volumes {
            if volume.state == VolumeState::CrashConsistent {
                let CopiedVolume { project, name, .. } = volume;
                text.push_str(&format!(
                    "volume {project}/{name} was in use: it is as after a power cut\n"
                ));
            }
        }
        for id in &self.unreadable {
            text.push_str(&format!(
                "the record of {id} cannot be read; it is in it as it is\n"
            ));
        }
        text
    }
}
