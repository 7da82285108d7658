//! Builds of templates that the server runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The form of `POST /v1/templates/build`. Every field is a text; every part with a file name is a
/// file of the build context, and its field name is the path below it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BuildTemplateForm {
    /// Of the template.
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    pub name: String,
    /// Which is to mean the new version. Default `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,49}$")]
    pub tag: Option<String>,
    /// The text of a Dockerfile. Either this or `image_ref`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 65_536)]
    pub dockerfile: Option<String>,
    /// An image: the same as a Dockerfile with nothing but `FROM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1024)]
    pub image_ref: Option<String>,
    /// MiB of disk. A wish: it has at least what the base needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9]{1,9}$")]
    pub size_mb: Option<String>,
    /// CPUs. Default: those of the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9]{1,9}$")]
    pub cpu: Option<String>,
    /// MiB. Default: that of the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9]{1,9}$")]
    pub memory_mb: Option<String>,
    /// The stage to build. Default: the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Values of `ARG`, as a JSON object of texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_args: Option<String>,
    /// What steps may reach: JSON, as `network` of a sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// `true`: do every step, whatever is kept of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(true|false|1|0)$")]
    pub fresh: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub description: Option<String>,
    /// Modes of files of the build context that are not 0644: JSON, paths with octal texts.
    #[serde(
        default,
        rename = "context.modes",
        skip_serializing_if = "Option::is_none"
    )]
    pub context_modes: Option<String>,
}

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TemplateBuildStatus {
    Queued,
    Running,
    Done,
    Failed,
}

/// A build of a template that the server runs, or ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TemplateBuild {
    pub id: String,
    /// Of the template.
    pub name: String,
    pub tag: String,
    pub status: TemplateBuildStatus,
    /// Why it failed.
    pub error: Option<String>,
    /// RFC 3339.
    pub started_at: Option<String>,
    /// RFC 3339.
    pub ended_at: Option<String>,
    /// MiB of disk: what was asked for, and when it is done what sandboxes have.
    pub size_mb: u64,
    /// Of the template on the host's disk, when it is done.
    pub bytes: u64,
    /// What a sandbox is created with when it is done; until then the image that was asked for, if
    /// one was.
    pub image_ref: String,
    /// The version that it made.
    pub version: Option<String>,
    pub steps: u64,
    /// How many of them were done before.
    pub cached: u64,
}

/// A step whose command failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedBuildStep {
    pub number: u64,
    pub steps: u64,
    /// Of the Dockerfile.
    pub line: u64,
    pub text: String,
    pub exit_code: i32,
    /// The last lines that it said.
    pub tail: Vec<String>,
    /// Where it failed. It is there for some minutes.
    pub sandbox: String,
}

/// One event of a build. The last is `built` or `failed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum TemplateBuildEvent {
    /// A base image is fetched and baked.
    Base {
        image: String,
        percent: u8,
        detail: Option<String>,
    },
    /// A stage begins.
    Stage { name: String, steps: u64 },
    /// A step was done by an earlier build.
    Cached {
        number: u64,
        steps: u64,
        text: String,
    },
    /// A step begins.
    Started {
        number: u64,
        steps: u64,
        text: String,
    },
    /// A line that a step said.
    Output { text: String, is_error: bool },
    /// A step is done, and its snapshot is kept.
    Finished { number: u64, elapsed_ms: u64 },
    /// The template is baked.
    Baking { percent: u8, detail: Option<String> },
    /// So many lines of steps are not kept any more.
    Dropped { lines: u64 },
    /// There is a version, and the tag means it.
    Built {
        name: String,
        tag: String,
        version: String,
        steps: u64,
        cached: u64,
        elapsed_ms: u64,
    },
    /// There is none.
    Failed {
        error: String,
        step: Option<FailedBuildStep>,
    },
}
