//! `TIME|none` on the command line.

use std::str::FromStr;

use crate::durations::{self, InvalidDuration};

/// A time to set, or one to take away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitChange {
    Remove,
    Seconds(u64),
}

impl LimitChange {
    /// As the API has it: null takes away.
    pub(crate) fn to_seconds(self) -> Option<u64> {
        match self {
            Self::Remove => None,
            Self::Seconds(seconds) => Some(seconds),
        }
    }
}

impl FromStr for LimitChange {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        if text == "none" {
            return Ok(Self::Remove);
        }
        let time = durations::parse(text)?;
        Ok(Self::Seconds(durations::seconds_up(time)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_takes_away_and_a_time_sets() {
        assert_eq!("none".parse(), Ok(LimitChange::Remove));
        assert_eq!("5m".parse(), Ok(LimitChange::Seconds(300)));
        assert!("never".parse::<LimitChange>().is_err());
        assert!("0".parse::<LimitChange>().is_err());
    }
}
