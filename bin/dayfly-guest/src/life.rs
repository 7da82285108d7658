//! The guest's own state: who it is and whether user code may run.

use dayfly_guest_proto::{AgentToken, GuestState, Identity};
use dayfly_types::SandboxId;

/// ```text
/// running --quiesce--> quiesced --opening--> quarantined --identify, thaw--> running
/// ```
/// A first boot is running: a template is baked by running commands in it.
#[derive(Debug)]
pub(crate) struct Life {
    state: GuestState,
    /// Whether an identity was handed over since the last quiesce.
    is_identified: bool,
    sandbox: Option<(SandboxId, AgentToken)>,
}

impl Default for Life {
    fn default() -> Self {
        Self {
            state: GuestState::Running,
            is_identified: false,
            sandbox: None,
        }
    }
}

impl Life {
    pub(crate) const fn state(&self) -> GuestState {
        self.state
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state == GuestState::Running
    }

    /// A quiesced guest that is spoken to may be a restore: it has no identity until it is told.
    pub(crate) fn note_opening(&mut self) {
        if self.state == GuestState::Quiesced {
            self.state = GuestState::Quarantined;
        }
    }

    pub(crate) fn note_quiesce(&mut self) {
        self.state = GuestState::Quiesced;
        self.is_identified = false;
        // A token is not inherited by whoever is restored from here.
        self.sandbox = None;
    }

    pub(crate) fn note_identity(&mut self, identity: Identity) {
        self.is_identified = true;
        self.sandbox = Some((identity.sandbox_id, identity.agent_token));
    }

    /// Whether user processes may run again.
    pub(crate) fn may_thaw(&self) -> bool {
        self.is_running() || self.is_identified
    }

    pub(crate) fn note_thaw(&mut self) {
        self.state = GuestState::Running;
    }
}
