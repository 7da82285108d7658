//! What a node knows of one template: what sandboxes are made from now, what its recipe says now,
//! and which bake is asked for or under way. The three may be of different recipes.

use std::sync::Arc;

use dayfly_node_api::{BakeState, TemplateReport};
use dayfly_snapshots::{BakedTemplate, ResolvedRecipe, TemplateDisk, VariantIdentity};
use dayfly_types::exec::ExecCommand;
use dayfly_types::{ProjectId, TemplateName};

use crate::template_reports;
use crate::templates::{BakeWish, BootableTemplate, ReadyTemplate};

#[derive(Debug)]
pub(crate) struct Known {
    report: TemplateReport,
    baked: Option<Baked>,
    recipe: Written,
    /// The digest of the recipe that is being baked.
    baking: Option<String>,
    /// It waits in the line of orders.
    is_ordered: bool,
    /// The project that ordered it; nobody, when it is of a recipe of the operator's.
    project: Option<ProjectId>,
    /// Somebody wants it baked if it is not on the disk.
    pub(crate) is_wanted: bool,
    /// For a variant.
    interest: Interest,
}

/// What sandboxes are made from.
#[derive(Debug)]
struct Baked {
    template: Arc<ReadyTemplate>,
    recipe: String,
    variant: Option<VariantIdentity>,
}

/// The recipe as it is written now.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Written {
    Right { digest: String },
    Wrong { reason: String },
}

/// What follows from asking for a bake.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It has to be put into the line.
    ToBeBaked,
    /// It is there, or on its way.
    Nothing,
    /// It cannot be baked.
    Refused { reason: String },
}

impl Known {
    pub(crate) fn of_recipe(recipe: &ResolvedRecipe, state: BakeState) -> Self {
        let digest = recipe.hash();
        let report = template_reports::of_recipe(recipe, state);
        let project = recipe.image.project().cloned();
        Self {
            project,
            ..Self::new(report, Written::Right { digest })
        }
    }

    /// One of which there is no recipe that can be used.
    pub(crate) fn wrong(name: &TemplateName, reason: String) -> Option<Self> {
        let report = template_reports::of_nothing(name, reason.clone()).ok()?;
        Some(Self::new(report, Written::Wrong { reason }))
    }

    fn new(report: TemplateReport, recipe: Written) -> Self {
        Self {
            report,
            baked: None,
            recipe,
            baking: None,
            is_ordered: false,
            project: None,
            is_wanted: false,
            interest: Interest::default(),
        }
    }

    /// The project that waits for its bake.
    pub(crate) fn whose(&self) -> Option<&ProjectId> {
        self.project.as_ref().or_else(|| self.orderer())
    }

    pub(crate) fn report(&self) -> TemplateReport {
        self.report.clone()
    }

    pub(crate) fn state(&self) -> &BakeState {
        &self.report.state
    }

    pub(crate) fn current(&self) -> Option<Arc<ReadyTemplate>> {
        Some(Arc::clone(&self.baked.as_ref()?.template))
    }

    /// The digest of the recipe that sandboxes are made by now.
    pub(crate) fn recipe_in_use(&self) -> Option<String> {
        Some(self.baked.as_ref()?.recipe.clone())
    }

    /// Whether it may be forgotten once it has no recipe any more.
    pub(crate) fn is_idle(&self) -> bool {
        self.baked.is_none() && self.baking.is_none()
    }

    fn is_of(&self, digest: &str) -> bool {
        let baked = self.baked.as_ref();
        baked.is_some_and(|baked| baked.recipe == digest)
    }

    /// Takes in what its recipe says now. What is baked stays as it is.
    pub(crate) fn learn(&mut self, recipe: &ResolvedRecipe, if_mended: BakeState) {
        let was_wrong = matches!(self.recipe, Written::Wrong { .. });
        let digest = recipe.hash();
        if self.baked.is_none() {
            let state = if was_wrong {
                if_mended
            } else {
                self.report.state.clone()
            };
            self.report = template_reports::of_recipe(recipe, state);
        } else {
            if was_wrong && self.baking.is_none() && !self.is_ordered {
                self.report.state = BakeState::Ready;
            }
            if self.is_of(&digest) {
                let words = &recipe.recipe;
                self.report.description.clone_from(&words.description);
                self.report.contexts.clone_from(&words.contexts);
                self.report.run = words.run;
            }
        }
        self.recipe = Written::Right { digest };
    }

    /// Its recipe cannot be used any more. What is baked goes on being used. Says whether that is
    /// news.
    pub(crate) fn learn_wrong(&mut self, reason: String) -> bool {
        let wrong = Written::Wrong {
            reason: reason.clone(),
        };
        let is_news = self.recipe != wrong;
        self.recipe = wrong;
        if self.baking.is_none() {
            self.report.state = BakeState::Failed { reason };
        }
        is_news
    }

    /// Somebody asks for a bake.
    pub(crate) fn ask(&mut self, wish: BakeWish) -> Asked {
        self.is_wanted = true;
        if self.baked.is_some() && wish == BakeWish::IfMissing {
            return Asked::Nothing;
        }
        let digest = match &self.recipe {
            Written::Right { digest } => digest.clone(),
            Written::Wrong { reason } => {
                let reason = reason.clone();
                return Asked::Refused { reason };
            }
        };
        if self.is_ordered || self.baking.as_ref() == Some(&digest) {
            return Asked::Nothing;
        }
        if self.is_of(&digest) && self.baking.is_none() {
            // A bake of another recipe may have failed in between.
            self.report.state = BakeState::Ready;
            return Asked::Nothing;
        }
        // The disk is being searched for it; whoever does that sees the wish.
        let is_searched = self.report.state == BakeState::Waiting && self.baking.is_none();
        if is_searched && self.baked.is_none() {
            return Asked::Nothing;
        }
        self.put_into_line()
    }

    fn put_into_line(&mut self) -> Asked {
        self.is_ordered = true;
        if self.baking.is_none() {
            self.report.state = BakeState::Waiting;
        }
        Asked::ToBeBaked
    }

    /// It was looked for and is not on the disk.
    pub(crate) fn is_missing(&mut self) -> Asked {
        if self.is_wanted && !self.is_ordered {
            return self.put_into_line();
        }
        if !self.is_ordered {
            self.report.state = BakeState::NotBaked;
        }
        Asked::Nothing
    }

    /// Its turn has come.
    pub(crate) fn leave_line(&mut self) {
        self.is_ordered = false;
    }

    pub(crate) fn is_in_line(&self) -> bool {
        self.is_ordered
    }

    /// Its turn has come too early.
    pub(crate) fn come_back_into_line(&mut self) {
        self.is_ordered = true;
    }

    /// Says whether this recipe still has to be baked, and that it is being baked then.
    pub(crate) fn begin(&mut self, digest: String) -> bool {
        if self.is_of(&digest) {
            self.report.state = BakeState::Ready;
            return false;
        }
        self.baking = Some(digest);
        true
    }

    pub(crate) fn progress(&mut self, state: BakeState) {
        self.report.state = state;
    }

    /// The bake came to nothing. What was baked before goes on being used.
    pub(crate) fn failed(&mut self, reason: String) {
        self.baking = None;
        self.report.state = if self.is_ordered {
            BakeState::Waiting
        } else {
            BakeState::Failed { reason }
        };
    }

    /// From now on sandboxes are made from this.
    pub(crate) fn baked(&mut self, template: &BakedTemplate, recipe: Option<&ResolvedRecipe>) {
        self.baking = None;
        let state = match &self.recipe {
            Written::Wrong { reason } => BakeState::Failed {
                reason: reason.clone(),
            },
            Written::Right { .. } if self.is_ordered => BakeState::Waiting,
            Written::Right { .. } => BakeState::Ready,
        };
        self.report = template_reports::of_bake(template, recipe, state);
        self.baked = Some(Baked {
            template: Arc::new(ready_template(template)),
            recipe: template.manifest().recipe.hash.clone(),
            variant: template.manifest().variant.clone(),
        });
    }

    /// A bake that was found on the disk may be one of another recipe: then that of now is due.
    pub(crate) fn renew_if_outdated(&mut self) -> Asked {
        let Written::Right { digest } = &self.recipe else {
            return Asked::Nothing;
        };
        if self.is_of(digest) || self.is_ordered {
            return Asked::Nothing;
        }
        self.put_into_line()
    }
}

#[path = "template_known_variant.rs"]
mod variant;
use variant::Interest;

pub(crate) fn ready_template(template: &BakedTemplate) -> ReadyTemplate {
    ReadyTemplate {
        name: template.manifest().name.clone(),
        version: template.version().as_str().to_owned(),
        restore: template.restore_spec(),
        made_by: Some(template.manifest().engine.clone()),
    }
}

pub(crate) fn bootable_template(disk: &TemplateDisk) -> BootableTemplate {
    let manifest = disk.manifest();
    let template = ReadyTemplate {
        name: manifest.name.clone(),
        version: disk.version().as_str().to_owned(),
        restore: disk.restore_spec(),
        made_by: Some(manifest.engine.clone()),
    };
    let offer = manifest.offer.clone().unwrap_or_default();
    let entry_point = (!offer.entry_point.is_empty()).then_some(offer.entry_point);
    let programs = offer.start.into_iter().map(ExecCommand::Shell);
    BootableTemplate {
        template,
        start: entry_point
            .map(ExecCommand::Argv)
            .into_iter()
            .chain(programs)
            .collect(),
    }
}
