//! What is known of a template in another size than its own, beyond what is known of any.

use std::sync::Arc;

use dayfly_node_api::{BakeState, VariantReport};
use dayfly_types::{ProjectId, TemplateSize};

use super::{Known, Written};
use crate::templates::ReadyTemplate;

/// Who asked for a variant.
#[derive(Debug, Default)]
pub(super) struct Interest {
    /// The project that it counts for while it is not baked; then the bake says it.
    ordered_by: Option<ProjectId>,
    /// A create waits for its bake, or waited and has not come back yet.
    is_awaited: bool,
}

impl Known {
    pub(crate) fn ordered_by(mut self, project: Option<ProjectId>) -> Self {
        self.interest.ordered_by = project;
        self
    }

    /// The project that it counts for. `None`: no project's.
    pub(crate) fn orderer(&self) -> Option<&ProjectId> {
        let baked = self.baked.as_ref().and_then(|baked| baked.variant.as_ref());
        match baked {
            Some(variant) => variant.ordered_by.as_ref(),
            None => self.interest.ordered_by.as_ref(),
        }
    }

    /// A create waits for it, unless it is there already.
    pub(crate) fn note_awaited(&mut self) {
        self.interest.is_awaited |= self.baked.is_none();
    }

    /// What a sandbox is made from now. Whoever waited for it has it.
    pub(crate) fn begin_use(&mut self) -> Option<Arc<ReadyTemplate>> {
        let current = self.current()?;
        self.interest.is_awaited = false;
        Some(current)
    }

    /// A bake that failed, of which nothing can be used and that nobody has ordered again.
    pub(crate) fn has_come_to_nothing(&self) -> bool {
        let is_failed = matches!(self.report.state, BakeState::Failed { .. });
        is_failed && self.is_idle() && !self.is_ordered
    }

    /// Gives up a bake of another recipe than this and than that of now. Says whether anything of
    /// the variant is left.
    pub(crate) fn keep_if_of(&mut self, recipe: &str) -> bool {
        let Some(baked) = &self.baked else {
            return true;
        };
        let is_of = |digest: &str| baked.variant.as_ref().is_some_and(|one| one.of == digest);
        let is_of_now = match &self.recipe {
            Written::Right { digest } => baked.recipe == *digest,
            Written::Wrong { .. } => false,
        };
        if is_of(recipe) || is_of_now {
            return true;
        }
        self.baked = None;
        self.report.is_usable = false;
        if self.baking.is_none() && !self.is_ordered {
            self.report.state = BakeState::NotBaked;
            return false;
        }
        true
    }

    pub(crate) fn variant_report(&self, size: TemplateSize) -> VariantReport {
        let variant = self.baked.as_ref().and_then(|baked| baked.variant.as_ref());
        VariantReport {
            size,
            state: self.report.state.clone(),
            is_usable: self.report.is_usable,
            size_bytes: self.report.size_bytes,
            baked_at: self.report.baked_at,
            bake_ms: variant.map(|variant| variant.bake_ms),
            is_awaited: self.baked.is_some() && self.interest.is_awaited,
        }
    }
}
