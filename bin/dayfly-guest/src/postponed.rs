//! Calls that wait for the thaw.

use std::collections::VecDeque;

use dayfly_guest_proto::{Call, GuestError, GuestErrorCode};
use dayfly_types::limits::AGENT_CALLS_MAX;

/// What waiting calls may take of the guest's memory together.
const POSTPONED_BYTES_MAX: usize = 8 << 20;

/// All that wait, in their order.
#[derive(Debug, Default)]
pub(crate) struct Postponed {
    calls: VecDeque<Call>,
    bytes: usize,
}

impl Postponed {
    pub(crate) fn push(&mut self, call: Call, bytes: usize) -> Result<(), GuestError> {
        if self.calls.len() >= AGENT_CALLS_MAX || self.bytes + bytes > POSTPONED_BYTES_MAX {
            let text = "too many calls wait for the guest to go on";
            return Err(GuestError::new(GuestErrorCode::TooMany, text));
        }
        self.bytes += bytes;
        self.calls.push_back(call);
        Ok(())
    }

    /// Takes all of them out.
    pub(crate) fn take(&mut self) -> VecDeque<Call> {
        std::mem::take(self).calls
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dayfly_guest_proto::Request;

    #[test]
    fn waiting_calls_are_bounded_in_number_and_in_bytes() {
        let call = || Call {
            call: 1,
            request: Request::Activity,
        };
        let mut many = Postponed::default();
        for _ in 0..AGENT_CALLS_MAX {
            many.push(call(), 1).unwrap();
        }
        let refused = many.push(call(), 1).unwrap_err();
        assert_eq!(refused.code, GuestErrorCode::TooMany);
        let mut long = Postponed::default();
        long.push(call(), POSTPONED_BYTES_MAX).unwrap();
        assert!(long.push(call(), 1).is_err());
        long.clear();
        long.push(call(), 1).unwrap();
    }
}
