//! What runs a build.

use std::fmt;
use std::fs::File;
use std::net::IpAddr;

use dayfly_api::{FailedBuildStep, TemplateBuildEvent};
use dayfly_types::ContextPath;
use futures::future::BoxFuture;

use super::order::NewBuild;

/// Runs builds, as a client of this API.
pub trait TemplateBuilder: Send + Sync + 'static {
    /// Runs a build to its end.
    ///
    /// # Cancel safety
    /// Dropping the future ends the build. What it has running goes by itself.
    fn build(
        &self,
        order: BuildOrder,
        told: BuildTold,
    ) -> BoxFuture<'static, Result<BuiltVersion, BuildFailure>>;
}

/// Who is told of events, except of the last.
pub type BuildTold = Box<dyn FnMut(TemplateBuildEvent) + Send>;

/// A key that a caller presented. Its text is in no debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct BuildKey(String);

impl BuildKey {
    pub(crate) fn new(presented: &str) -> Self {
        Self(presented.to_owned())
    }

    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BuildKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BuildKey(..)")
    }
}

/// A build, and who asked for it.
#[derive(Debug)]
pub struct BuildOrder {
    pub key: BuildKey,
    /// As the audit record has it.
    pub client: Option<IpAddr>,
    pub wish: NewBuild,
    pub context: UploadedContext,
}

/// The files that came with the form.
#[derive(Debug, Default)]
pub struct UploadedContext {
    /// What is in all of them, one after the other. It has no name.
    pub content: Option<File>,
    pub files: Vec<UploadedFile>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadedFile {
    pub path: ContextPath,
    pub offset: u64,
    pub length: u64,
    pub mode: u32,
}

/// What a build made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltVersion {
    pub version: String,
    pub steps: u64,
    pub cached: u64,
    pub disk_mb: u64,
    pub bytes: u64,
}

/// Why it made nothing, for whoever asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFailure {
    pub error: String,
    pub step: Option<Box<FailedBuildStep>>,
}
