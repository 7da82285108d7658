//! Waiting for a create that was refused for now.

use std::time::Duration;

use dayfly_types::ErrorCode;

use crate::error::{ApiError, ClientError};
use crate::limits;

/// Why a create has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason {
    /// The template is being baked.
    TemplateBaking,
    /// The host has no room.
    NoCapacity,
    /// The node is starting, or starting again.
    NodeUnavailable,
}

/// News for whoever watches a waiting create. Nothing has been created yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitProgress {
    pub reason: WaitReason,
    /// How far a bake is, 0 to 100.
    pub percent: Option<u8>,
    /// The server's words.
    pub message: String,
    /// Since the first refusal.
    pub waited: Duration,
}

/// The refusals that leave nothing behind and pass by themselves.
const WAITED_FOR: [(ErrorCode, WaitReason); 3] = [
    (ErrorCode::TemplateBaking, WaitReason::TemplateBaking),
    (ErrorCode::NoCapacity, WaitReason::NoCapacity),
    (ErrorCode::NodeUnavailable, WaitReason::NodeUnavailable),
];

/// What to do about a refused create.
pub(crate) struct Wait {
    pub(crate) progress: WaitProgress,
    pub(crate) pause: Duration,
}

/// The waits of one create.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// The reason of the last refusal, and how long was waited when it began.
    last: Option<(WaitReason, Duration)>,
}

impl Waits {
    /// How to wait after `error`; gives the error back when waiting does not help, or has lasted
    /// too long: for this reason, or as a whole. A node that starts again after a long bake, as the
    /// first start on a host with KVM does, is waited for like any other.
    pub(crate) fn after(
        &mut self,
        error: ClientError,
        waited: Duration,
    ) -> Result<Wait, ClientError> {
        let ClientError::Api(api) = &error else {
            return Err(error);
        };
        let Some(reason) = reason_of(api) else {
            return Err(error);
        };
        let waited_max = match reason {
            WaitReason::TemplateBaking => limits::BAKING_WAIT_MAX,
            WaitReason::NoCapacity => limits::CAPACITY_WAIT_MAX,
            WaitReason::NodeUnavailable => limits::NODE_WAIT_MAX,
        };
        let began = match self.last {
            Some((last, began)) if last == reason => began,
            _ => waited,
        };
        self.last = Some((reason, began));
        if waited - began >= waited_max || waited >= limits::BAKING_WAIT_MAX {
            return Err(error);
        }
        let pause = api
            .retry_after
            .unwrap_or(limits::WAIT_PAUSE_DEFAULT)
            .clamp(limits::WAIT_PAUSE_MIN, limits::WAIT_PAUSE_MAX);
        let progress = WaitProgress {
            reason,
            percent: api.percent,
            message: api.message.clone(),
            waited,
        };
        Ok(Wait { progress, pause })
    }
}

fn reason_of(error: &ApiError) -> Option<WaitReason> {
    let code = error.known_code()?;
    let mut waited_for = WAITED_FOR.iter();
    waited_for
        .find(|(refusal, _)| *refusal == code)
        .map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: ErrorCode, retry_after: Option<Duration>) -> ClientError {
        ClientError::Api(Box::new(ApiError {
            status: code.http_status(),
            code: code.as_str().to_owned(),
            message: "not now".to_owned(),
            advice: dayfly_api::Advice::default(),
            request_id: None,
            retry_after,
            percent: Some(7),
            health: None,
        }))
    }

    #[test]
    fn only_refusals_that_left_nothing_are_waited_for() {
        for code in ErrorCode::ALL {
            let waits = Waits::default().after(refusal(*code, None), Duration::ZERO);
            let waits = waits.is_ok();
            let expected = matches!(
                code,
                ErrorCode::TemplateBaking | ErrorCode::NoCapacity | ErrorCode::NodeUnavailable
            );
            assert_eq!(waits, expected, "{code:?}");
        }
        let limit = Duration::ZERO;
        let lost = ClientError::Timeout { limit };
        assert!(Waits::default().after(lost, Duration::ZERO).is_err());
    }

    #[test]
    fn the_pause_is_the_servers_within_limits() {
        let pause = |seconds: Option<u64>| {
            let error = refusal(ErrorCode::TemplateBaking, seconds.map(Duration::from_secs));
            let wait = Waits::default().after(error, Duration::ZERO);
            wait.map(|wait| wait.pause).unwrap()
        };
        assert_eq!(pause(None), limits::WAIT_PAUSE_DEFAULT);
        assert_eq!(pause(Some(0)), limits::WAIT_PAUSE_MIN);
        assert_eq!(pause(Some(3)), Duration::from_secs(3));
        assert_eq!(pause(Some(60)), limits::WAIT_PAUSE_MAX);
    }

    #[test]
    fn waiting_ends() {
        for (code, limit) in [
            (ErrorCode::NodeUnavailable, limits::NODE_WAIT_MAX),
            (ErrorCode::NoCapacity, limits::CAPACITY_WAIT_MAX),
            (ErrorCode::TemplateBaking, limits::BAKING_WAIT_MAX),
        ] {
            let mut waits = Waits::default();
            assert!(waits.after(refusal(code, None), Duration::ZERO).is_ok());
            let nearly = limit.saturating_sub(Duration::from_millis(1));
            assert!(waits.after(refusal(code, None), nearly).is_ok());
            assert!(waits.after(refusal(code, None), limit).is_err(), "{code:?}");
        }
    }

    #[test]
    fn a_node_that_starts_again_after_a_long_bake_is_waited_for() {
        let baking = || refusal(ErrorCode::TemplateBaking, None);
        let starting = || refusal(ErrorCode::NodeUnavailable, None);
        let mut waits = Waits::default();
        assert!(waits.after(baking(), Duration::ZERO).is_ok());
        let baked = limits::NODE_WAIT_MAX * 6;
        assert!(waits.after(starting(), baked).is_ok());
        assert!(
            waits
                .after(starting(), baked + limits::NODE_WAIT_MAX)
                .is_err()
        );
        // Taking turns they do not go on for ever.
        assert!(waits.after(baking(), limits::BAKING_WAIT_MAX).is_err());
    }
}
