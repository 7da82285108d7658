//! The guest's own state: who it is, whether user code may run, and when it may again.

use dayfly_guest_proto::{AgentToken, GuestState, Identity};
use dayfly_types::SandboxId;

/// ```text
/// running --quiesce--> quiesced --thaw, or end of the lease--> running
///                      quiesced --opening--> quarantined --identify, thaw--> running
/// ```
/// A first boot is running: a template is baked by running commands in it.
#[derive(Debug)]
pub(crate) struct Life {
    state: GuestState,
    /// Whether an identity was handed over since this could last have become a copy.
    is_identified: bool,
    sandbox: Option<(SandboxId, AgentToken)>,
    /// Since when it is this sandbox. The same one may be identified again after a sleep.
    became: Option<(SandboxId, u64)>,
    quiesced_ms: u64,
    lease_end_ms: Option<u64>,
}

impl Default for Life {
    fn default() -> Self {
        Self {
            state: GuestState::Running,
            is_identified: false,
            sandbox: None,
            became: None,
            quiesced_ms: 0,
            lease_end_ms: None,
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

    pub(crate) fn is_quiesced(&self) -> bool {
        self.state == GuestState::Quiesced
    }

    /// Whoever opens a conversation with a frozen guest may speak to a copy of it: there is no
    /// identity until it is told. The lease stays, because it may also be the guest itself, whose
    /// host died.
    pub(crate) fn note_opening(&mut self) {
        if !self.is_running() {
            self.quarantine();
        }
    }

    fn quarantine(&mut self) {
        self.state = GuestState::Quarantined;
        self.is_identified = false;
        // A token is not inherited by a copy.
        self.sandbox = None;
    }

    /// User processes stand still from now on. Gives whether the caller may mark this guest as the
    /// source of a capture: one in quarantine may be a copy, and must not forget it.
    pub(crate) fn note_quiesce(&mut self, now_ms: u64, lease_ms: Option<u64>) -> bool {
        if self.state == GuestState::Quarantined {
            return false;
        }
        if self.is_running() {
            self.quiesced_ms = now_ms;
        }
        self.state = GuestState::Quiesced;
        self.lease_end_ms = lease_ms.map(|lease| now_ms.saturating_add(lease));
        true
    }

    pub(crate) fn note_identity(&mut self, identity: Identity, now_unix_nanos: u64) {
        self.is_identified = true;
        let is_same = |(id, _): &&(SandboxId, u64)| *id == identity.sandbox_id;
        if self.became.as_ref().filter(is_same).is_none() {
            self.became = Some((identity.sandbox_id.clone(), now_unix_nanos));
        }
        self.sandbox = Some((identity.sandbox_id, identity.agent_token));
    }

    /// When this guest became the sandbox that it is.
    pub(crate) fn became_unix_nanos(&self) -> Option<u64> {
        self.became.as_ref().map(|(_, moment)| *moment)
    }

    /// Whether user processes may run again: in the conversation that stopped them, or in a guest
    /// that knows who it is.
    pub(crate) fn may_thaw(&self) -> bool {
        self.state != GuestState::Quarantined || self.is_identified
    }

    /// User processes run. Gives how long they stood still.
    pub(crate) fn note_thaw(&mut self, now_ms: u64) -> u64 {
        let paused_ms = if self.is_running() {
            0
        } else {
            now_ms.saturating_sub(self.quiesced_ms)
        };
        self.state = GuestState::Running;
        self.lease_end_ms = None;
        paused_ms
    }

    pub(crate) const fn lease_end_ms(&self) -> Option<u64> {
        self.lease_end_ms
    }

    /// Ends a lease whose time has come. Gives whether user processes shall run again: not in a
    /// copy, which waits for its identity for as long as it takes.
    pub(crate) fn end_lease(&mut self, now_ms: u64, is_copy: impl FnOnce() -> bool) -> bool {
        let is_due = self.lease_end_ms.is_some_and(|end_ms| end_ms <= now_ms);
        if !is_due {
            return false;
        }
        self.lease_end_ms = None;
        let is_copy = is_copy();
        // One that is spoken to already may even have its identity by now, and keeps it.
        if is_copy && self.is_quiesced() {
            self.quarantine();
        }
        !is_copy
    }

    /// Tries the end of the lease again later.
    pub(crate) fn extend_lease(&mut self, end_ms: u64) {
        self.lease_end_ms = Some(end_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiesced(lease_ms: Option<u64>) -> Life {
        let mut life = Life::default();
        assert!(life.note_quiesce(1000, lease_ms));
        life
    }

    #[test]
    fn conversation_that_quiesced_may_thaw_and_another_needs_an_identity() {
        let mut life = quiesced(None);
        assert!(life.may_thaw());
        life.note_opening();
        assert_eq!(life.state(), GuestState::Quarantined);
        assert!(!life.may_thaw());
        assert!(!life.note_quiesce(1100, Some(5)), "it may be a copy");
        assert!(!life.may_thaw());
        assert_eq!(life.lease_end_ms(), None);
    }

    #[test]
    fn lease_lets_the_source_run_and_never_a_copy() {
        let mut source = quiesced(Some(500));
        assert!(!source.end_lease(1499, || false), "too early");
        assert!(source.end_lease(1500, || false));
        assert_eq!(source.note_thaw(1500), 500);

        let mut copy = quiesced(Some(500));
        assert!(!copy.end_lease(1500, || true));
        assert_eq!(copy.state(), GuestState::Quarantined);
        assert!(!copy.end_lease(9999, || false), "the lease is gone");
        assert!(!copy.may_thaw());
    }

    #[test]
    fn copy_that_was_identified_stays_so_when_its_lease_ends() {
        let mut copy = quiesced(Some(500));
        copy.note_opening();
        copy.is_identified = true;
        assert!(!copy.end_lease(1500, || true));
        assert!(copy.may_thaw());
    }

    #[test]
    fn lease_outlives_an_opening_and_ends_with_a_thaw() {
        let mut life = quiesced(Some(500));
        life.note_opening();
        assert_eq!(life.lease_end_ms(), Some(1500));
        life.note_thaw(1200);
        assert_eq!(life.lease_end_ms(), None);
        assert!(life.is_running());
    }

    #[test]
    fn quiesce_again_counts_the_pause_from_the_first() {
        let mut life = quiesced(Some(500));
        assert!(life.note_quiesce(1200, None));
        assert_eq!(life.lease_end_ms(), None);
        assert_eq!(life.note_thaw(1700), 700);
        assert_eq!(life.note_thaw(1800), 0, "it runs already");
    }
}
