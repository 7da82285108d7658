//! One stage: what it is built on, its steps, and the keys of their caches.

use dayfly_dockerfile::{StagePlan, Step, StepKey};

use crate::base::Base;
use crate::keys::{changes_files, snapshot_name};

/// What a stage begins with.
#[derive(Debug, Clone)]
pub(crate) enum Foundation {
    Base(Box<Base>),
    /// An earlier stage.
    Stage(usize),
}

/// A stage that can be built.
#[derive(Debug, Clone)]
pub(crate) struct PlannedStage {
    pub(crate) name: String,
    pub(crate) foundation: Foundation,
    pub(crate) plan: StagePlan,
    pub(crate) first_key: StepKey,
    /// Behind each step.
    pub(crate) keys: Vec<StepKey>,
    /// Of what each step takes from the build context.
    pub(crate) digests: Vec<Vec<String>>,
}

impl PlannedStage {
    pub(crate) fn last_key(&self) -> &StepKey {
        self.keys.last().unwrap_or(&self.first_key)
    }

    /// The name of what the stage leaves.
    pub(crate) fn result(&self) -> String {
        snapshot_name(self.last_key())
    }

    /// How many steps need not be done, because the snapshot behind the last of them that changes
    /// files is there.
    pub(crate) fn done(&self, is_kept: impl Fn(&str) -> bool) -> usize {
        let steps = self.plan.steps.iter().zip(&self.keys).enumerate();
        let last = steps
            .rev()
            .find(|(_, (step, key))| changes_files(&step.work) && is_kept(&snapshot_name(key)));
        let mut done = last.map_or(0, |(index, _)| index + 1);
        // What follows and changes no files is done as well.
        while let Some(step) = self.plan.steps.get(done) {
            if changes_files(&step.work) {
                break;
            }
            done += 1;
        }
        done
    }

    /// The snapshot that the step at a place begins with; nothing where the foundation is.
    pub(crate) fn snapshot_before(&self, place: usize) -> Option<String> {
        let steps = self.plan.steps.iter().zip(&self.keys).take(place);
        let last = steps.rev().find(|(step, _)| changes_files(&step.work));
        last.map(|(_, key)| snapshot_name(key))
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.plan.steps
    }
}
