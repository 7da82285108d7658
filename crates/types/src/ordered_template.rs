//! Templates that somebody asked for over the API, beside those of recipes.

use serde::{Deserialize, Serialize};

use crate::container_image::MadeImage;
use crate::{DiskMib, MemoryMib, ProjectId, SnapshotId, TemplateName, Vcpus};

/// What the name of an ordered template begins with: it is of an image, or it was built. A dot is in no
/// name that people give to templates of their own.
pub const IMAGE_PREFIX: &str = "image.";
pub const BUILT_PREFIX: &str = "built.";

/// Whether a template of this name can have been ordered.
#[must_use]
pub fn is_ordered_name(name: &TemplateName) -> bool {
    let prefixes = [IMAGE_PREFIX, BUILT_PREFIX];
    prefixes
        .iter()
        .any(|prefix| name.as_str().starts_with(prefix))
}

/// A template to make, with all that decides what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderedTemplate {
    /// Of nobody's choosing: users have names of their own for it.
    pub name: TemplateName,
    #[serde(default)]
    pub description: String,
    pub source: OrderedSource,
    pub memory: MemoryMib,
    pub vcpus: Vcpus,
    pub disk: DiskMib,
    /// Whether its program is started before the capture and goes on in every sandbox.
    pub starts_entry_point: bool,
}

/// Where the disk of an ordered template comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OrderedSource {
    /// The image of a container in a registry: host, name, and tag or digest.
    Image {
        /// For whom it is fetched: what this project may reach and use, and nothing else.
        project: ProjectId,
        address: String,
    },
    /// The disk of a snapshot, with what is said of its use. Once it was taken over, the snapshot may
    /// go.
    Snapshot {
        project: ProjectId,
        snapshot: SnapshotId,
        about: Box<MadeImage>,
    },
}
