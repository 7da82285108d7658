//! Which templates this node can restore, as the rest of the node sees it.
//!
//! The real source bakes in the background (`bake`); simulated nodes have a fixed list.

use std::sync::Arc;

use dayfly_node_api::{NodeError, TemplateReport, VariantReport, VariantRequest};
use dayfly_snapshots::capture::MemoryBase;
use dayfly_snapshots::{EngineIdentity, OrderError};
use dayfly_types::exec::ExecCommand;
use dayfly_types::{ErrorCode, OrderedTemplate, TemplateName, TemplateSize, UnfitSize, limits};
use dayfly_vmm::RestoreSpec;
use std::time::Duration;
use tokio::sync::watch;

/// A template that can be restored now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyTemplate {
    pub name: TemplateName,
    /// Which bake. Parked engines of another bake are not used.
    pub version: String,
    pub restore: RestoreSpec,
    /// The engine that baked it, where that is known.
    pub made_by: Option<EngineIdentity>,
}

impl ReadyTemplate {
    #[must_use]
    pub fn size(&self) -> TemplateSize {
        let machine = &self.restore.machine;
        TemplateSize {
            memory: machine.memory,
            vcpus: machine.vcpus,
        }
    }
}

/// A version of a template without its memory: what a machine boots on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootableTemplate {
    /// Its memory image is [`dayfly_vmm::MemoryImage::Zeros`].
    pub template: ReadyTemplate,
    /// Programs that run in every sandbox of it.
    pub start: Vec<ExecCommand>,
}

/// Why a template cannot be restored now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateUnavailable {
    #[error("there is no template {name:?}; this node has: {known}")]
    Unknown { name: String, known: String },
    #[error("template {name:?} is being baked: {percent}% ({step})")]
    Baking {
        name: String,
        percent: u8,
        step: String,
    },
    #[error("version {version} of template {name:?} cannot be restored here: {reason}")]
    Version {
        name: String,
        version: String,
        reason: String,
    },
    #[error("template {name:?} could not be baked: {reason}")]
    Failed { name: String, reason: String },
    #[error("template {name:?} is not available with {size}: {reason}")]
    Size {
        name: String,
        size: TemplateSize,
        reason: UnfitSize,
    },
    #[error(
        "template {name:?} has {} sizes beside its own, which is the limit: {sizes}; use one of \
         them",
        limits::VARIANTS_OF_TEMPLATE_MAX
    )]
    ManyVariants { name: String, sizes: String },
    #[error(
        "the project has had {} sizes baked, which is the limit: {sizes}; use one of them, or have \
         an operator bake another",
        limits::VARIANTS_OF_PROJECT_MAX
    )]
    ManyOfProject { sizes: String },
}

/// How soon a caller may ask again for a template that is being baked.
const BAKING_RETRY: Duration = Duration::from_secs(2);

impl From<TemplateUnavailable> for NodeError {
    fn from(error: TemplateUnavailable) -> Self {
        let text = error.to_string();
        match error {
            TemplateUnavailable::Unknown { .. } => NodeError::not_found(text),
            TemplateUnavailable::Baking { percent, .. } => {
                NodeError::new(ErrorCode::TemplateBaking, text)
                    .retry_after(BAKING_RETRY)
                    .at_percent(percent)
            }
            TemplateUnavailable::Version { .. } => NodeError::new(ErrorCode::SnapshotUnfit, text),
            TemplateUnavailable::Failed { .. } => NodeError::new(ErrorCode::TemplateFailed, text),
            TemplateUnavailable::Size { .. } => NodeError::new(ErrorCode::InvalidRequest, text),
            TemplateUnavailable::ManyVariants { .. }
            | TemplateUnavailable::ManyOfProject { .. } => {
                NodeError::new(ErrorCode::QuotaExceeded, text)
            }
        }
    }
}

/// Why a template of a project was neither taken in nor given up.
#[derive(Debug, thiserror::Error)]
pub enum TakeOrderError {
    #[error("{name} is not a name of an ordered template")]
    Name { name: TemplateName },
    #[error("the template cannot be ordered")]
    Order(#[source] OrderError),
    #[error("the order cannot be removed")]
    Remove(#[source] std::io::Error),
    #[error(transparent)]
    Unavailable(TemplateUnavailable),
    #[error("this node takes no orders for templates")]
    NotHere,
}

impl From<TakeOrderError> for NodeError {
    fn from(error: TakeOrderError) -> Self {
        let text = crate::error_chain(&error);
        let code = match error {
            TakeOrderError::Unavailable(unavailable) => return unavailable.into(),
            TakeOrderError::Order(OrderError::TooMany) => ErrorCode::NoCapacity,
            TakeOrderError::Name { .. }
            | TakeOrderError::Order(
                OrderError::NotInRegistry { .. } | OrderError::Address { .. },
            ) => ErrorCode::InvalidRequest,
            TakeOrderError::Order(OrderError::Keep(_)) | TakeOrderError::Remove(_) => {
                ErrorCode::Internal
            }
            TakeOrderError::NotHere => ErrorCode::NotFound,
        };
        NodeError::new(code, text)
    }
}

fn no_variants(name: &TemplateName, wanted: &VariantRequest) -> TemplateUnavailable {
    TemplateUnavailable::Failed {
        name: format!("{name} with {}", wanted.size),
        reason: "nothing is baked here".to_owned(),
    }
}

/// What somebody who asks for a bake wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BakeWish {
    /// A template that sandboxes can be made from, whichever bake that is.
    IfMissing,
    /// The recipe as it is written now.
    Renew,
}

/// Where templates come from.
pub trait TemplateSource: Send + Sync + std::fmt::Debug + 'static {
    /// All of them, without what images say of themselves.
    fn reports(&self) -> Vec<TemplateReport>;

    /// All that there is to say of one.
    fn report(&self, name: &TemplateName) -> Option<TemplateReport> {
        let mut reports = self.reports().into_iter();
        reports.find(|report| report.name == *name)
    }

    /// Every template that is ready now.
    fn all_ready(&self) -> Vec<Arc<ReadyTemplate>>;

    /// The template of that name. Asking for one that is not baked orders it.
    ///
    /// # Errors
    /// [`TemplateUnavailable`] says why not now, or why never.
    fn ready(&self, name: &TemplateName) -> Result<Arc<ReadyTemplate>, TemplateUnavailable>;

    /// Asks for the bake of a template. Repeatable; a failed bake is tried again. A source that
    /// bakes nothing has what it has. May block on the disk, where recipes are.
    ///
    /// # Errors
    /// [`TemplateUnavailable`] when it can never be had here.
    fn order(&self, name: &TemplateName, _wish: BakeWish) -> Result<(), TemplateUnavailable> {
        self.ready(name).map(drop)
    }

    /// Takes in a template of a project, and asks for its bake. Repeatable. Blocks on the disk.
    ///
    /// # Errors
    /// [`TakeOrderError`].
    fn take_order(&self, _wanted: &OrderedTemplate) -> Result<(), TakeOrderError> {
        Err(TakeOrderError::NotHere)
    }

    /// Gives a template of a project up. An absent one is a success. Blocks on the disk.
    ///
    /// # Errors
    /// [`TakeOrderError`].
    fn give_up_order(&self, _name: &TemplateName) -> Result<(), TakeOrderError> {
        Err(TakeOrderError::NotHere)
    }

    /// The template in another size than its own, for a sandbox. Asking for one that is not baked
    /// orders it. A source that bakes nothing has its templates in the size that they have.
    ///
    /// # Errors
    /// [`TemplateUnavailable`] says why not now, or why never.
    fn ready_in(
        &self,
        name: &TemplateName,
        wanted: &VariantRequest,
    ) -> Result<Arc<ReadyTemplate>, TemplateUnavailable> {
        let own = self.ready(name)?;
        if own.size() == wanted.size {
            return Ok(own);
        }
        Err(no_variants(name, wanted))
    }

    /// Asks for the bake of a variant, as [`TemplateSource::order`] does for a template. May block
    /// on the disk.
    ///
    /// # Errors
    /// [`TemplateUnavailable`] when it can never be had here.
    fn order_variant(
        &self,
        name: &TemplateName,
        wanted: &VariantRequest,
    ) -> Result<VariantReport, TemplateUnavailable> {
        Err(no_variants(name, wanted))
    }

    /// Whether engines are parked for it before anybody has used it.
    fn is_parked_ahead(&self, _template: &ReadyTemplate) -> bool {
        true
    }

    /// One bake of a template, current or not, for what was captured on top of it. May block on
    /// the disk the first time.
    ///
    /// # Errors
    /// [`TemplateUnavailable::Version`] when it is gone or damaged. Which engine it needs is in it.
    fn version(
        &self,
        name: &TemplateName,
        version: &str,
    ) -> Result<Arc<ReadyTemplate>, TemplateUnavailable>;

    /// The disk of one bake and what boots on it, whatever became of its memory. Of exactly that
    /// name: nothing else is looked for in its place. May block as [`TemplateSource::version`].
    ///
    /// # Errors
    /// [`TemplateUnavailable::Version`] when it is gone or damaged.
    fn disk_of(
        &self,
        name: &TemplateName,
        version: &str,
    ) -> Result<BootableTemplate, TemplateUnavailable>;

    /// What of one bake lies under a machine or a capture whose memory lies on `base`. May block as
    /// [`TemplateSource::version`].
    ///
    /// # Errors
    /// [`TemplateUnavailable::Version`] when it is gone or damaged.
    fn under(
        &self,
        base: MemoryBase,
        name: &TemplateName,
        version: &str,
    ) -> Result<Arc<ReadyTemplate>, TemplateUnavailable> {
        match base {
            MemoryBase::Template => self.version(name, version),
            MemoryBase::Zeros => Ok(Arc::new(self.disk_of(name, version)?.template)),
        }
    }

    /// Changes whenever a template becomes ready.
    fn changes(&self) -> watch::Receiver<u64>;
}
