//! What an engine says about itself before it is asked to do anything.

use std::fmt;

use dayfly_types::Isolation;
use serde::{Deserialize, Serialize};

/// A product that can run a vm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    Qemu,
    Firecracker,
    Fake,
}

impl EngineKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Firecracker => "firecracker",
            Self::Fake => "fake",
        }
    }
}

/// One build of an engine: a digest over its program and everything that it loads. Two builds of
/// one version may differ, as when a distribution mends a fault in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EngineBuild(String);

impl EngineBuild {
    #[must_use]
    pub fn new(digest: impl Into<String>) -> Self {
        Self(digest.into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EngineBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What executes the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accelerator {
    Kvm,
    /// Software emulation. For development: it is not a security boundary.
    Tcg,
}

impl Accelerator {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }

    #[must_use]
    pub const fn isolation(self) -> Isolation {
        match self {
            Self::Kvm => Isolation::Hardware,
            Self::Tcg => Isolation::Emulated,
        }
    }
}

/// Which parts of a vm an engine can save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureKind {
    /// Device state alone; memory is already in its file.
    DeviceOnly,
    /// Device state and the pages that differ from the base.
    Diff,
    /// Device state and all of memory.
    Full,
}

/// The facts that placement and admission decide on. A driver never sees a call they exclude.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    pub engine: EngineKind,
    pub engine_version: String,
    /// None for one that runs outside a root of its own.
    pub build: Option<EngineBuild>,
    pub accelerator: Accelerator,
    /// The processor that the guest sees; part of what a snapshot must fit.
    pub cpu_model: String,
    pub captures: Vec<CaptureKind>,
    /// Whether a process can be started ahead of its restore.
    pub can_park: bool,
}

impl Capabilities {
    #[must_use]
    pub fn can_capture(&self, kind: CaptureKind) -> bool {
        self.captures.contains(&kind)
    }
}
