//! Freezing user code for a capture and letting it go on.
//!
//! ```text
//!          quiesce                          thaw
//! calls ------|  status, identify, mounts    |------ calls
//!             |  everything else waits ------|--> served in order
//! streams ----|------ go on, but nobody writes ----- streams
//! ```
//! The guest that was captured notices nothing but the time. Its copies, which start in the middle
//! of the drawing, are told by an opening that they are spoken to by somebody else.

use std::io;

use dayfly_guest_proto::{Call, CopyMark, GuestError, Response};

use crate::agent::Agent;
use crate::clock::monotonic_ms;
use crate::identity;
use crate::refusal::{guest_error, wrong_state};
use crate::sys;

/// When to try again after user processes could not be let go.
const THAW_RETRY_MS: u64 = 1000;

impl Agent {
    /// Serves a call now, or after the thaw. `bytes` is the length of its message.
    pub(crate) fn take_call(&mut self, call: Call, bytes: usize) {
        if !self.life.is_quiesced() || call.request.is_served_while_quiesced() {
            self.serve(call);
            // The call may have been the thaw; its own answer goes first.
            self.serve_postponed();
            return;
        }
        let number = call.call;
        if let Err(error) = self.postponed.push(call, bytes) {
            self.answer(number, Err(error));
        }
    }

    fn serve_postponed(&mut self) {
        if !self.life.is_running() {
            return;
        }
        for call in self.postponed.take() {
            self.serve(call);
        }
    }

    /// Stops user code and makes the disks current. File operations go on: what a capture sees of
    /// them is what a power cut would leave, and their temporary files.
    pub(crate) fn quiesce(
        &mut self,
        lease_ms: Option<u64>,
        mark: Option<&CopyMark>,
    ) -> Result<Response, GuestError> {
        // What is synced before the freeze need not be synced behind it, when user code stands still.
        if self.machine.is_guest() {
            rustix::fs::sync();
        }
        if let Some(group) = &self.machine.user_group
            && let Err(error) = group.freeze()
        {
            // Half frozen is worse than running: the caller gives up the capture.
            if self.life.is_running() {
                let _ = group.thaw();
            }
            return Err(guest_error("cannot freeze user processes", &error));
        }
        if self.machine.is_guest() {
            rustix::fs::sync();
        }
        // Without a mark a copy could not be told from its source, so there is no lease.
        let lease_ms = lease_ms.filter(|_| mark.is_some());
        if self.life.note_quiesce(monotonic_ms(), lease_ms) {
            match mark {
                Some(mark) => sys::copy_mark::write(mark),
                None => sys::copy_mark::clear(),
            }
        }
        Ok(Response::Done)
    }

    pub(crate) fn thaw(
        &mut self,
        wall_clock_unix_nanos: Option<u64>,
    ) -> Result<Response, GuestError> {
        if !self.life.may_thaw() {
            return Err(wrong_state("no identity since the last quiesce"));
        }
        if let Some(nanos) = wall_clock_unix_nanos
            && self.machine.is_guest()
        {
            identity::set_clock(nanos)
                .map_err(|error| guest_error("cannot set the clock", &error))?;
        }
        self.resume()
            .map_err(|error| guest_error("cannot thaw", &error))?;
        Ok(Response::Done)
    }

    /// Nobody thawed this guest in time. If it is the one that was captured, it goes on.
    pub(crate) fn expire_lease(&mut self, now_ms: u64) {
        if !self.life.end_lease(now_ms, sys::copy_mark::is_copy) {
            return;
        }
        if self.resume().is_err() {
            self.life.extend_lease(now_ms + THAW_RETRY_MS);
        }
        self.serve_postponed();
    }

    fn resume(&mut self) -> io::Result<()> {
        if let Some(group) = &self.machine.user_group {
            group.thaw()?;
        }
        let paused_ms = self.life.note_thaw(monotonic_ms());
        sys::copy_mark::clear();
        // The pause does not count against anybody's timeout.
        self.execs.allow_more_time(paused_ms);
        Ok(())
    }
}
