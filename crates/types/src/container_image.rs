//! What the node asks of the program that makes disks from images, and what that says.
//!
//! The program has no privilege and reads what strangers wrote; the node believes nothing of what it
//! says beyond what is here.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::egress::InternalNetwork;
use crate::{GuestDefaults, limits};

/// Names in the directory that the two share.
pub mod file_names {
    pub const JOB: &str = "job.json";
    pub const DISK: &str = "disk.img";

    /// The files that the disk is cut into, lowest first. The last has the tree.
    #[must_use]
    pub fn disk_part(index: usize) -> String {
        match index {
            0 => DISK.to_owned(),
            _ => format!("disk-{index}.img"),
        }
    }
    /// Layers as they were fetched, until they are on the disk.
    pub const LAYER: &str = "layer";
    /// Copies of images of this host.
    pub const LAYOUT: &str = "image";
    pub const ARCHIVE: &str = "image.tar";
}

/// One image to make a disk from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageJob {
    pub origin: ImageJobOrigin,
    /// Room for contents of files.
    pub disk_bytes: u64,
}

/// Where an image is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ImageJobOrigin {
    Registry {
        /// With the registry's host, and a tag or a digest.
        reference: String,
        resolvers: Vec<SocketAddr>,
        /// Certificates that are believed beside the public ones, as PEM.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        authority: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        login: Option<RegistryLogin>,
        /// Hosts and ports that may be inside the operator's networks, at any address.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        inside: Vec<(String, u16)>,
        /// What of those networks may be dialled for whoever named the image, under any host.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        networks: Vec<InternalNetwork>,
    },
    /// A copy of a directory in the OCI layout.
    Layout {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// A copy of what `docker save` wrote.
    Archive {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
}

/// Who asks a registry.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryLogin {
    pub user: String,
    pub password: String,
}

impl std::fmt::Debug for RegistryLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegistryLogin")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// A line that the program writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ImageReport {
    Progress { step: String, percent: u8 },
    Made(Box<MadeImage>),
    Failed { reason: String },
}

/// What an image is made of and what it says of its use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeImage {
    /// Of its manifest.
    pub digest: String,
    /// Of its layers, as they were fetched, lowest first.
    pub layers: Vec<String>,
    pub defaults: GuestDefaults,
    /// The program that the image is for, with its arguments; nothing if it has none. Of images that
    /// were read before `command` was told apart, that is at its end.
    pub entry_point: Vec<String>,
    /// What a build may put another in the place of: the last arguments, or the program itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// What a build gives commands to that are one text; nothing if the image does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shell: Vec<String>,
    /// The first instruction that the image has for whoever builds on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_build: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<ImageHealthCheck>,
}

impl MadeImage {
    /// Whether it says no more than may be said of an image.
    #[must_use]
    pub fn is_short(&self) -> bool {
        let defaults = &self.defaults;
        let health = self.health.as_ref().map(|health| match &health.command {
            ImageHealthCommand::Arguments(words) => words.as_slice(),
            ImageHealthCommand::Shell(text) => std::slice::from_ref(text),
        });
        let variables = defaults.environment.iter();
        let words = [&self.digest]
            .into_iter()
            .chain(&self.layers)
            .chain(&defaults.user)
            .chain(&defaults.directory)
            .chain(variables.flat_map(|(name, value)| [name, value]))
            .chain(&self.entry_point)
            .chain(&self.command)
            .chain(&self.shell)
            .chain(&self.on_build)
            .chain(health.unwrap_or_default());
        words.map(|word| word.len() + 1).sum::<usize>() <= limits::IMAGE_USE_BYTES_MAX
    }

    /// What is started: the entry point with the command behind it.
    #[must_use]
    pub fn program(&self) -> Vec<String> {
        self.entry_point
            .iter()
            .chain(&self.command)
            .cloned()
            .collect()
    }
}

/// How an image finds out whether its program is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageHealthCheck {
    pub command: ImageHealthCommand,
    pub interval_ms: u64,
    pub timeout_ms: u64,
    /// How long failures do not count.
    pub start_period_ms: u64,
    pub retries: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageHealthCommand {
    Arguments(Vec<String>),
    Shell(String),
}
