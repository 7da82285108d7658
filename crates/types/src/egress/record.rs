//! The record of one decision about a connection or a question.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};

use super::HostName;

/// One decision, or the end of a connection that was let through. It holds no path, no query, no
/// header value and no content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressRecord {
    /// Counts the records of one sandbox, from 1, over restarts of everything.
    pub sequence: u64,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    pub kind: EgressRecordKind,
    pub decision: Decision,
    /// What the guest asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<HostName>,
    pub name_source: NameSource,
    /// Where the guest's packet was addressed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<SocketAddrV4>,
    /// Where the connection really goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialed: Option<SocketAddrV4>,
    /// Addresses that a question was answered with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Ipv4Addr>,
    /// The rule that let it through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The internal network of the operator's that it goes into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_network: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<DenyReason>,
    /// In mode `observe`: an allowlist with these rules would have denied it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub would_deny: bool,
    #[serde(default)]
    pub bytes_up: u64,
    #[serde(default)]
    pub bytes_down: u64,
    #[serde(default)]
    pub duration_ms: u64,
    /// How many like it were not recorded since the last one that was.
    #[serde(default)]
    pub suppressed: u64,
}

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressRecordKind {
    Dns,
    Tls,
    Http,
    /// A connection of which only the address is known.
    Tcp,
}

impl EgressRecordKind {
    pub const ALL: [Self; 4] = [Self::Dns, Self::Tls, Self::Http, Self::Tcp];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Tls => "tls",
            Self::Http => "http",
            Self::Tcp => "tcp",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allowed,
    Denied,
    /// A connection that was allowed has ended; bytes and duration are those of the whole.
    Closed,
    /// It was allowed and then ended by a change of the policy.
    Cut,
    /// It was allowed and nobody answered.
    Failed,
}

impl Decision {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Closed => "closed",
            Self::Cut => "cut",
            Self::Failed => "failed",
        }
    }
}

/// Where the name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameSource {
    Sni,
    Host,
    Dns,
    None,
}

/// Why something was denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DenyReason {
    /// The sandbox may reach nothing.
    ModeDeny,
    /// No rule names it.
    NoRule,
    /// A rule names it, with other ports.
    Port,
    /// The address is private, the host's own, or a metadata service.
    NeverAddress,
    /// In `public`: a port known for abuse.
    AbusePort,
    /// No name could be read, and no rule names the address.
    NoName,
    /// The name is not one.
    BadName,
    /// What came does not fit the port, or is no well-formed request.
    Protocol,
    /// A type of question that is not answered.
    QuestionType,
    /// Too many at once, or too fast.
    Limit,
    /// Nothing understandable came in time.
    Timeout,
    /// The name has no address, or nobody could be asked.
    Unresolvable,
    /// This host has no way out.
    NoUplink,
}

impl DenyReason {
    pub const ALL: [Self; 13] = [
        Self::ModeDeny,
        Self::NoRule,
        Self::Port,
        Self::NeverAddress,
        Self::AbusePort,
        Self::NoName,
        Self::BadName,
        Self::Protocol,
        Self::QuestionType,
        Self::Limit,
        Self::Timeout,
        Self::Unresolvable,
        Self::NoUplink,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ModeDeny => "mode_deny",
            Self::NoRule => "no_rule",
            Self::Port => "port",
            Self::NeverAddress => "never_address",
            Self::AbusePort => "abuse_port",
            Self::NoName => "no_name",
            Self::BadName => "bad_name",
            Self::Protocol => "protocol",
            Self::QuestionType => "question_type",
            Self::Limit => "limit",
            Self::Timeout => "timeout",
            Self::Unresolvable => "unresolvable",
            Self::NoUplink => "no_uplink",
        }
    }
}
