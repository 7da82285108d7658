//! Calls that are answered when something listens on a port.
//!
//! The kernel tells nobody that a socket began to listen, so the agent looks: often at first, since
//! most services are there within moments, and less often then. One look serves all waits.

use std::collections::BTreeSet;

use dayfly_guest_proto::{GuestError, GuestErrorCode};
use dayfly_types::limits::{PORT_WAIT_CALL_MAX, PORT_WAITS_MAX};
use dayfly_types::port::Listener;

const PAUSE_FIRST_MS: u64 = 2;
const PAUSE_MAX_MS: u64 = 50;

/// One call that waits.
#[derive(Debug)]
struct PortWait {
    call: u64,
    port: u16,
    end_ms: u64,
}

/// An answer that is due: what listens, which is nothing when the time of the wait is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DueAnswer {
    pub(crate) call: u64,
    pub(crate) ports: Vec<Listener>,
}

/// All that wait, of one conversation.
#[derive(Debug, Default)]
pub(crate) struct PortWaits {
    waits: Vec<PortWait>,
    next_look_ms: u64,
    pause_ms: u64,
}

impl PortWaits {
    pub(crate) fn add(
        &mut self,
        call: u64,
        port: u16,
        timeout_ms: u64,
        now_ms: u64,
    ) -> Result<(), GuestError> {
        if self.waits.len() >= PORT_WAITS_MAX {
            let text = "too many calls wait for ports";
            return Err(GuestError::new(GuestErrorCode::TooMany, text));
        }
        let longest = u64::try_from(PORT_WAIT_CALL_MAX.as_millis()).unwrap_or(u64::MAX);
        let end_ms = now_ms.saturating_add(timeout_ms.min(longest));
        self.waits.push(PortWait { call, port, end_ms });
        self.next_look_ms = now_ms;
        self.pause_ms = PAUSE_FIRST_MS;
        Ok(())
    }

    /// When to look next.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        let first_end = self.waits.iter().map(|wait| wait.end_ms).min()?;
        Some(first_end.min(self.next_look_ms))
    }

    /// Looks if it is time to, and gives the answers that are due.
    pub(crate) fn look(
        &mut self,
        now_ms: u64,
        listening: impl FnOnce() -> BTreeSet<Listener>,
    ) -> Vec<DueAnswer> {
        if self.deadline_ms().is_none_or(|deadline| now_ms < deadline) {
            return Vec::new();
        }
        self.next_look_ms = now_ms.saturating_add(self.pause_ms);
        self.pause_ms = (self.pause_ms * 2).min(PAUSE_MAX_MS);
        let listening = listening();
        let mut due = Vec::new();
        self.waits.retain(|wait| {
            let found = listening.iter().filter(|found| found.port == wait.port);
            let ports: Vec<Listener> = found.cloned().collect();
            let is_due = !ports.is_empty() || now_ms >= wait.end_ms;
            if is_due {
                let call = wait.call;
                due.push(DueAnswer { call, ports });
            }
            !is_due
        });
        due
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listeners(ports: &[u16]) -> BTreeSet<Listener> {
        let listener = |port: &u16| Listener {
            port: *port,
            address: "127.0.0.1".to_owned(),
        };
        ports.iter().map(listener).collect()
    }

    fn calls(due: &[DueAnswer]) -> Vec<(u64, bool)> {
        due.iter()
            .map(|answer| (answer.call, !answer.ports.is_empty()))
            .collect()
    }

    #[test]
    fn each_wait_ends_with_its_port_or_its_time() {
        let mut waits = PortWaits::default();
        assert_eq!(waits.deadline_ms(), None);
        waits.add(1, 80, 1000, 0).unwrap();
        waits.add(2, 81, 3, 0).unwrap();
        assert!(waits.look(0, || listeners(&[22])).is_empty());
        assert!(waits.look(1, || panic!("too early")).is_empty());
        assert_eq!(calls(&waits.look(2, || listeners(&[80]))), [(1, true)]);
        assert_eq!(waits.deadline_ms(), Some(3), "its end is before the look");
        assert_eq!(calls(&waits.look(3, || listeners(&[]))), [(2, false)]);
        assert_eq!(waits.deadline_ms(), None);
    }

    #[test]
    fn looks_become_rare_and_a_new_wait_makes_them_frequent() {
        let mut waits = PortWaits::default();
        waits.add(1, 80, u64::MAX, 0).unwrap();
        let mut now = 0;
        for _ in 0..10 {
            waits.look(now, BTreeSet::new);
            now = waits.deadline_ms().unwrap();
        }
        assert_eq!(now, 2 + 4 + 8 + 16 + 32 + 5 * PAUSE_MAX_MS);
        waits.add(2, 81, 0, now).unwrap();
        assert_eq!(calls(&waits.look(now, BTreeSet::new)), [(2, false)]);
        assert_eq!(waits.deadline_ms(), Some(now + PAUSE_FIRST_MS));
    }

    #[test]
    fn no_call_waits_longer_than_a_call_may_and_there_are_not_too_many() {
        let mut waits = PortWaits::default();
        for call in 0..PORT_WAITS_MAX {
            waits.add(call as u64, 80, u64::MAX, 0).unwrap();
        }
        let refused = waits.add(999, 80, 1, 0).unwrap_err();
        assert_eq!(refused.code, GuestErrorCode::TooMany);
        let end = u64::try_from(PORT_WAIT_CALL_MAX.as_millis()).unwrap();
        assert_eq!(waits.look(end, BTreeSet::new).len(), PORT_WAITS_MAX);
    }
}
