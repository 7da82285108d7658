//! How long a caller wants a sandbox to live, checked.

use dayfly_api::{ChangeLifecycle, OnTimeout as WireOnTimeout};
use dayfly_node_api::LifecycleChange;
use dayfly_types::{IdleAction, LifetimeRules, limits};

use crate::input::Invalid;
use crate::input::quantity::between;

/// The four wishes of a create or a fork.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LifecycleWish {
    pub(crate) ttl_seconds: Option<u64>,
    pub(crate) persistent: Option<bool>,
    pub(crate) idle_seconds: Option<u64>,
    pub(crate) on_timeout: Option<WireOnTimeout>,
}

impl LifecycleWish {
    /// # Errors
    /// [`Invalid`] when a time is out of range.
    pub(crate) fn check(self) -> Result<LifetimeRules, Invalid> {
        let persistent = self.persistent.unwrap_or(false);
        let ttl_seconds = self.ttl_seconds.map(ttl).transpose()?;
        Ok(LifetimeRules {
            ttl_seconds: ttl_seconds.or_else(|| ttl_default(persistent)),
            persistent,
            idle_seconds: self.idle_seconds.map(idle).transpose()?,
            on_timeout: self.on_timeout.map_or_else(IdleAction::default, from_wire),
        })
    }
}

/// Checks a change of a lifecycle.
///
/// # Errors
/// [`Invalid`] when a time is out of range.
pub(crate) fn change(body: ChangeLifecycle) -> Result<LifecycleChange, Invalid> {
    let ttl_seconds = body.ttl_seconds.map(|seconds| seconds.map(ttl).transpose());
    let idle_seconds = body
        .idle_seconds
        .map(|seconds| seconds.map(idle).transpose());
    Ok(LifecycleChange {
        ttl_seconds: ttl_seconds.transpose()?,
        persistent: body.persistent,
        idle_seconds: idle_seconds.transpose()?,
        on_timeout: body.on_timeout.map(from_wire),
    })
}

/// The time to live of a sandbox for which none was given.
pub(crate) fn ttl_default(persistent: bool) -> Option<u64> {
    (!persistent).then_some(limits::TTL_SECONDS_DEFAULT)
}

/// # Errors
/// [`Invalid`] when it is out of range.
pub(crate) fn ttl(seconds: u64) -> Result<u64, Invalid> {
    if (1..=limits::TTL_SECONDS_MAX).contains(&seconds) {
        return Ok(seconds);
    }
    Err(between("ttl_seconds", 1, limits::TTL_SECONDS_MAX))
}

fn idle(seconds: u64) -> Result<u64, Invalid> {
    let (min, max) = (limits::IDLE_SECONDS_MIN, limits::IDLE_SECONDS_MAX);
    if (min..=max).contains(&seconds) {
        return Ok(seconds);
    }
    Err(between("idle_seconds", min, max))
}

fn from_wire(word: WireOnTimeout) -> IdleAction {
    match word {
        WireOnTimeout::Delete => IdleAction::Delete,
        WireOnTimeout::Hibernate => IdleAction::Hibernate,
    }
}

pub(crate) fn to_wire(word: IdleAction) -> WireOnTimeout {
    match word {
        IdleAction::Delete => WireOnTimeout::Delete,
        IdleAction::Hibernate => WireOnTimeout::Hibernate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<LifecycleChange, Invalid> {
        change(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn a_change_keeps_what_is_absent_and_takes_away_what_is_null() {
        assert_eq!(parse("{}").unwrap(), LifecycleChange::default());
        let ttl = parse(r#"{"ttl_seconds":7}"#).unwrap();
        assert_eq!((ttl.ttl_seconds, ttl.idle_seconds), (Some(Some(7)), None));
        let none = parse(r#"{"ttl_seconds":null,"idle_seconds":null}"#).unwrap();
        assert_eq!(
            (none.ttl_seconds, none.idle_seconds),
            (Some(None), Some(None))
        );
        let word = parse(r#"{"on_timeout":"hibernate"}"#).unwrap();
        assert_eq!(word.on_timeout, Some(IdleAction::Hibernate));
    }

    #[test]
    fn times_out_of_range_are_refused() {
        for json in [
            r#"{"ttl_seconds":0}"#,
            r#"{"ttl_seconds":31536001}"#,
            r#"{"idle_seconds":4}"#,
            r#"{"idle_seconds":31536001}"#,
        ] {
            assert!(parse(json).is_err(), "{json}");
        }
    }
}
