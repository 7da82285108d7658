//! What a figure is to reach.

use serde::Serialize;

use crate::figures::round;

/// One goal, and whether this run reached it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Goal {
    /// The name of the figure in the report.
    pub(crate) goal: &'static str,
    pub(crate) at_most: f64,
    pub(crate) measured: f64,
    pub(crate) met: bool,
}

impl Goal {
    pub(crate) fn at_most(goal: &'static str, at_most: f64, measured: f64) -> Self {
        let measured = round(measured);
        Self {
            goal,
            at_most,
            measured,
            met: measured <= at_most,
        }
    }

    /// For a person.
    pub(crate) fn line(&self) -> String {
        let verdict = if self.met { "met" } else { "missed" };
        format!(
            "{:<16} {:>7.3}, at most {:.2}: {verdict}\n",
            self.goal, self.measured, self.at_most
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_at_its_limit_and_not_above() {
        assert!(Goal::at_most("a", 1.25, 1.25).met);
        assert!(!Goal::at_most("a", 1.25, 1.251).met);
        assert!(!Goal::at_most("a", 1.25, f64::NAN).met);
    }
}
