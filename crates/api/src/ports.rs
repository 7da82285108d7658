//! Services in a sandbox, as they are reached from outside.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::number::whole_number;

/// Response of `GET /v1/sandboxes/{id}/ports`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortList {
    /// Empty while the sandbox is hibernated; asking does not wake it.
    pub ports: Vec<Port>,
}

/// A TCP port on which something in the sandbox listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Port {
    pub port: u16,
    /// The address in the guest that it is bound to.
    pub address: String,
    /// Where it is reached by host name, with a key or a link.
    pub url: String,
    /// Where it is reached by path, with a key or a link.
    pub path_url: String,
}

/// Body of `POST /v1/sandboxes/{id}/ports/{port}/wait`. Unknown fields are refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitForPort {
    /// How long to wait; 0 looks once. Default 60000.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 0, maximum = 600_000)]
    pub timeout_ms: Option<u64>,
}

/// Body of `POST /v1/sandboxes/{id}/ports/{port}/links`. Unknown fields are refused: one that is
/// not understood might have been meant to narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreatePortLink {
    /// How long the link works. Default 3600.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 1, maximum = 604_800)]
    pub ttl_seconds: Option<u64>,
    /// Opens the port to anybody, without a token. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<bool>,
}

/// Something that opens a port to those who have no key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortLink {
    pub id: String,
    pub port: u16,
    /// Whether anybody may use the port.
    pub public: bool,
    /// By host name. Has the token in it when the link was just made.
    pub url: String,
    /// By path. Has the token in it when the link was just made.
    pub path_url: String,
    /// Only when the link was just made, and only if it is not public: it is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The prefix of the key that made it. Null: it is not known.
    #[serde(default)]
    pub made_by: Option<String>,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// RFC 3339, UTC.
    pub expires_at: String,
}

/// Response of `GET /v1/sandboxes/{id}/ports/{port}/links` and of `GET /v1/sandboxes/{id}/links`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortLinkList {
    pub items: Vec<PortLink>,
}
