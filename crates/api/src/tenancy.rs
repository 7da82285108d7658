//! Projects, their keys and limits, and the record of what was done with them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::network::NetworkRecord;
use crate::number::{whole_number, whole_number_or_null};

/// Response of `GET /v1/me/tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// Those that work now, oldest first.
    pub items: Vec<Token>,
    /// Ask with this as `cursor` for the next page. Absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// What it begins with; names it in this API.
    pub prefix: String,
    pub label: String,
    /// Of `read`, `create`, `exec`, `admin`, `operator`, with those that others include.
    pub scopes: Vec<String>,
    /// The only sandbox that it may be used on.
    pub sandbox_id: Option<String>,
    /// The prefix of the key that made it. Null: it is not known.
    #[serde(default)]
    pub made_by: Option<String>,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// RFC 3339, UTC. Null: it does not expire.
    pub expires_at: Option<String>,
    /// Whose it is, in a view over all projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// Body of `POST /v1/me/tokens`. Unknown fields are refused: one that is not understood might have
/// been meant to narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// What people call it. Default empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128)]
    pub label: Option<String>,
    /// Default: those of the key that makes it, without `operator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 5)]
    pub scopes: Option<Vec<String>>,
    /// Lets it be used on this sandbox only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<String>,
    /// Default: it does not expire.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 1, maximum = 3650)]
    pub expires_in_days: Option<u64>,
    /// The same in seconds; at most one of the two.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 1, maximum = 315_360_000)]
    pub expires_in_seconds: Option<u64>,
}

/// A key that was just made. The secret is shown once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    #[serde(flatten)]
    pub token_info: Token,
    /// The key itself.
    pub token: String,
}

// By hand, so that no debug text holds the key.
impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewToken")
            .field("token_info", &self.token_info)
            .finish_non_exhaustive()
    }
}

/// What a project may use at once. Null is as much as there is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectLimits {
    pub sandboxes: Option<u64>,
    pub vcpus: Option<u64>,
    pub memory_mb: Option<u64>,
    pub snapshot_mb: Option<u64>,
    pub volume_mb: Option<u64>,
    pub requests_per_second: Option<u64>,
    /// Disks of its sandboxes, in full.
    #[serde(default)]
    pub disk_mb: Option<u64>,
    /// Whether the audit record keeps what commands printed.
    pub keeps_output: bool,
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Project {
    pub id: String,
    /// active, suspended, or deleting.
    #[serde(default = "active")]
    pub state: String,
    /// Why it is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub limits: ProjectLimits,
    /// RFC 3339, UTC.
    pub created_at: String,
}

/// What servers of before say of every project.
fn active() -> String {
    "active".to_owned()
}

/// Body of `POST /v1/projects/{project}/suspend`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SuspendProject {
    /// Shown to whoever uses a key of the project.
    #[schema(min_length = 1, max_length = 256)]
    pub reason: String,
    /// Also hibernate its sandboxes. Default false: what runs goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sandboxes: Option<bool>,
}

/// Response of `POST /v1/projects/{project}/suspend`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectSuspension {
    pub project: Project,
    /// Ids of sandboxes that were hibernated now.
    pub hibernated: Vec<String>,
    /// Ids of sandboxes that could not be hibernated. The log of the server says why; ask again.
    pub failed: Vec<String>,
}

/// Response of `GET /v1/projects`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectList {
    /// Oldest first.
    pub items: Vec<Project>,
}

/// Body of `POST /v1/projects`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateProject {
    /// A DNS label.
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    pub id: String,
    /// What differs from the default of a new project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ChangeLimits>,
}

/// Body of `PATCH /v1/projects/{project}`: what is absent stays, null takes a limit away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeLimits {
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number_or_null"
    )]
    #[schema(value_type = Option<u64>)]
    pub sandboxes: Option<Option<u64>>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number_or_null"
    )]
    #[schema(value_type = Option<u64>)]
    pub vcpus: Option<Option<u64>>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number_or_null"
    )]
    #[schema(value_type = Option<u64>)]
    pub memory_mb: Option<Option<u64>>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number_or_null"
    )]
    #[schema(value_type = Option<u64>)]
    pub snapshot_mb: Option<Option<u64>>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number_or_null"
    )]
    #[schema(value_type = Option<u64>)]
    pub volume_mb: Option<Option<u64>>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number_or_null"
    )]
    #[schema(value_type = Option<u64>)]
    pub requests_per_second: Option<Option<u64>>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number_or_null"
    )]
    #[schema(value_type = Option<u64>)]
    pub disk_mb: Option<Option<u64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps_output: Option<bool>,
}

/// Response of `GET /v1/usage`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectUsage {
    pub sandboxes: u64,
    pub vcpus: u64,
    pub memory_mb: u64,
    pub snapshot_mb: u64,
    pub volume_mb: u64,
    /// Disks of its sandboxes, in full, asleep or not.
    #[serde(default)]
    pub disk_mb: u64,
    pub limits: ProjectLimits,
    /// Whose it is, in a view over all projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// Response of `GET /v1/usage/projects`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectUsageList {
    /// One for each project, oldest first.
    pub items: Vec<ProjectUsage>,
}

/// Response of `GET /v1/usage/sandboxes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SandboxLoadList {
    /// When this was read, in milliseconds since 1970: CPU time between two readings is a load.
    pub at_ms: u64,
    /// Those that run now.
    pub items: Vec<SandboxLoad>,
}

/// What a sandbox that runs costs the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SandboxLoad {
    pub id: String,
    /// CPU time in microseconds since its machine was started. A wake starts it anew.
    pub cpu_us: u64,
    /// Memory that it alone has, in bytes. What it shares with others of its template does not count.
    pub memory_bytes: u64,
    /// Whose it is, in a view over all projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// Response of `GET /v1/audit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// Newest first.
    pub items: Vec<AuditEntry>,
    /// Ask with this as `cursor` for what is older. Null: there is nothing older.
    pub next_cursor: Option<String>,
}

/// One thing that somebody did, or tried to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    pub seq: u64,
    /// RFC 3339, UTC.
    pub at: String,
    /// Of the key that was used.
    pub key_prefix: String,
    pub request_id: String,
    /// Method and path.
    pub operation: String,
    /// The sandbox, snapshot, volume or key that it was about.
    pub subject: Option<String>,
    /// The HTTP status of the response.
    pub status: u16,
    /// What there is to say beyond that: of a command its input, its end, and sizes and digests of
    /// its output.
    #[schema(value_type = Object)]
    pub detail: serde_json::Value,
    /// The address that the request came from, or that a trusted proxy named. Absent where nobody
    /// asked, and in entries from before there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Whose it is, in a view over all projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// An event of `GET /v1/events`: a sandbox came into a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SandboxEvent {
    /// Ask with this as `after`, or as `Last-Event-ID`, for what comes behind it.
    pub cursor: String,
    /// RFC 3339, UTC.
    pub at: String,
    pub sandbox_id: String,
    pub state: String,
    pub reason: Option<String>,
    /// Whose it is, in a view over all projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// An entry of `GET /v1/export`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExportedAudit {
    /// Among the entries of all projects. Ask with this as `after_audit` for what comes behind it.
    pub number: u64,
    #[serde(flatten)]
    pub entry: AuditEntry,
}

/// A decision about egress, of `GET /v1/export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExportedDecision {
    /// Among the decisions about all sandboxes. Ask with this as `after_egress` for what comes
    /// behind it.
    pub number: u64,
    pub project: String,
    pub sandbox_id: String,
    /// As in the network log of the sandbox.
    pub record: NetworkRecord,
}

/// The decisions about egress of `GET /v1/export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExportedDecisions {
    /// Of which their numbers are. Another one means that the host has lost its decisions, or is
    /// another one: begin anew.
    pub series: String,
    /// In the order in which they were recorded.
    pub decisions: Vec<ExportedDecision>,
    /// Ask with this as `after_egress` for what comes behind the page. A number up to this one that
    /// is in no page is of a decision that is gone.
    pub through: u64,
}

/// Response of `GET /v1/export`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExportPage {
    /// Of which the numbers are. Another one means that a backup was put back: begin anew.
    pub series: String,
    /// In the order in which they were written.
    pub audit: Vec<ExportedAudit>,
    /// In the order in which they happened.
    pub events: Vec<SandboxEvent>,
    /// Null while the host does not respond. Absent from servers that export no decisions.
    #[serde(default, skip_serializing_if = "ExportedEgress::is_untold")]
    #[schema(value_type = Option<ExportedDecisions>)]
    pub egress: ExportedEgress,
}

/// What a page has of decisions about egress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ExportedEgress {
    Told(ExportedDecisions),
    /// The host does not respond.
    Away,
    /// The server is of a release before there were any.
    #[default]
    #[serde(skip)]
    Untold,
}

impl ExportedEgress {
    #[must_use]
    pub const fn told(&self) -> Option<&ExportedDecisions> {
        match self {
            Self::Told(decisions) => Some(decisions),
            Self::Away | Self::Untold => None,
        }
    }

    const fn is_untold(&self) -> bool {
        matches!(self, Self::Untold)
    }
}

/// The OpenID provider that people sign in with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignInOffer {
    /// Its name, which is also its address.
    pub issuer: String,
    /// What this server is called there. Ask for a token with this audience.
    pub client_id: String,
    /// Where a client asks for a code that is entered in a browser, if the provider has that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_authorization_endpoint: Option<String>,
    /// Where a client gets its tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// What to ask the provider for.
    pub scopes: Vec<String>,
}

/// Body of `POST /v1/sign-in`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignInRequest {
    /// An ID token of the provider, for this server.
    pub id_token: String,
    /// Which project the key is to be of. Needed by people who have roles in several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

// By hand, so that no debug text holds the token.
impl std::fmt::Debug for SignInRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignInRequest")
            .field("project", &self.project)
            .finish_non_exhaustive()
    }
}
