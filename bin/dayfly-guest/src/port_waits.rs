//! Calls that are answered when something listens on a port.
//!
//! The kernel tells nobody that a socket began to listen, so the agent looks: often at first, since
//! most services are there within moments, and less often then. One look serves all waits. A look
//! reads the table of all sockets, and user code can fill it: so the agent, which has one thread,
//! looks for at most a tenth of its time, however many wait and whenever their time ends.

use std::collections::BTreeSet;
use std::time::Duration;

use dayfly_guest_proto::{GuestError, GuestErrorCode};
use dayfly_types::limits::{PORT_WAIT_CALL_MAX, PORT_WAITS_MAX};
use dayfly_types::port::Listener;

const PAUSE_FIRST_MS: u64 = 2;
const PAUSE_MAX_MS: u64 = 50;
/// How many times as long as a look the pause after it is, at least.
const PAUSE_PER_LOOK: u32 = 10;
/// The longest such pause: a call that waits must be answered before its caller gives it up.
const REST_MAX: Duration = PORT_WAIT_CALL_MAX;

/// One call that waits.
#[derive(Debug)]
struct PortWait {
    call: u64,
    port: u16,
    end_ms: u64,
}

/// An answer that is due: who listens, which is nobody when the time of the wait is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DueAnswer {
    pub(crate) call: u64,
    pub(crate) found: Option<Listener>,
}

/// Everything that listens, and how long it took to find that out.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) listening: BTreeSet<Listener>,
    pub(crate) took: Duration,
}

/// All that wait, of one conversation.
#[derive(Debug, Default)]
pub(crate) struct PortWaits {
    waits: Vec<PortWait>,
    next_look_ms: u64,
    pause_ms: u64,
    /// No look before this, whatever ends or is added.
    rest_end_ms: u64,
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
        Some(first_end.min(self.next_look_ms).max(self.rest_end_ms))
    }

    /// Looks if it is time to, and gives the answers that are due.
    pub(crate) fn look(&mut self, now_ms: u64, look: impl FnOnce() -> Look) -> Vec<DueAnswer> {
        if self.deadline_ms().is_none_or(|deadline| now_ms < deadline) {
            return Vec::new();
        }
        self.next_look_ms = now_ms.saturating_add(self.pause_ms);
        self.pause_ms = (self.pause_ms * 2).min(PAUSE_MAX_MS);
        let Look { listening, took } = look();
        let rest = took.saturating_mul(PAUSE_PER_LOOK).min(REST_MAX);
        self.rest_end_ms = now_ms.saturating_add(milliseconds(took + rest));
        let mut due = Vec::new();
        self.waits.retain(|wait| {
            let found = listening.iter().find(|found| found.port == wait.port);
            let is_due = found.is_some() || now_ms >= wait.end_ms;
            if is_due {
                due.push(DueAnswer {
                    call: wait.call,
                    found: found.cloned(),
                });
            }
            !is_due
        });
        due
    }

    /// Forgets whoever waits, but not that the agent has just looked.
    pub(crate) fn clear(&mut self) {
        self.waits.clear();
    }
}

/// Whole ones, and one more for what is left: a pause may be longer, not shorter.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listeners(ports: &[u16]) -> Look {
        taking(Duration::ZERO, ports)
    }

    fn taking(took: Duration, ports: &[u16]) -> Look {
        let listener = |port: &u16| Listener {
            port: *port,
            address: "127.0.0.1".to_owned(),
        };
        let listening = ports.iter().map(listener).collect();
        Look { listening, took }
    }

    fn nobody() -> Look {
        listeners(&[])
    }

    fn calls(due: &[DueAnswer]) -> Vec<(u64, bool)> {
        due.iter()
            .map(|answer| (answer.call, answer.found.is_some()))
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
            waits.look(now, nobody);
            now = waits.deadline_ms().unwrap();
        }
        assert_eq!(now, 2 + 4 + 8 + 16 + 32 + 5 * PAUSE_MAX_MS);
        waits.add(2, 81, 0, now).unwrap();
        assert_eq!(calls(&waits.look(now, nobody)), [(2, false)]);
        assert_eq!(waits.deadline_ms(), Some(now + PAUSE_FIRST_MS));
    }

    #[test]
    fn looks_that_take_long_leave_the_agent_ten_times_as_long() {
        let mut waits = PortWaits::default();
        waits.add(1, 80, u64::MAX, 0).unwrap();
        let slow = || taking(Duration::from_micros(19_500), &[22]);
        assert!(waits.look(0, slow).is_empty());
        // 19.5 of the look and 195 after it.
        assert_eq!(waits.deadline_ms(), Some(215));
        // Neither a new wait nor the end of one makes it look earlier.
        waits.add(2, 81, 0, 20).unwrap();
        waits.add(3, 22, 0, 20).unwrap();
        assert!(waits.look(214, || panic!("too early")).is_empty());
        assert_eq!(calls(&waits.look(215, slow)), [(2, false), (3, true)]);
        // Nor another conversation.
        waits.clear();
        waits.add(1, 80, u64::MAX, 300).unwrap();
        assert_eq!(waits.deadline_ms(), Some(215 + 215));
        let endless = || taking(Duration::from_secs(3), &[]);
        assert!(waits.look(430, endless).is_empty());
        assert_eq!(waits.deadline_ms(), Some(430 + 3000 + 5000));
    }

    #[test]
    fn of_many_that_listen_on_a_port_one_is_given() {
        let mut waits = PortWaits::default();
        waits.add(1, 80, 10, 0).unwrap();
        let mut look = listeners(&[80, 81]);
        let listening = look.listening.clone().into_iter();
        look.listening.extend(listening.map(|one| Listener {
            address: "::1".to_owned(),
            ..one
        }));
        let due = waits.look(0, || look);
        assert_eq!(due.len(), 1);
        assert_eq!(due[0].found.as_ref().unwrap().port, 80);
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
        assert_eq!(waits.look(end, nobody).len(), PORT_WAITS_MAX);
    }
}
