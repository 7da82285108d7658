//! Asking the rules about one connection.

use std::net::SocketAddrV4;

use dayfly_core::egress::{Verdict, decide as decide_name, decide_address};
use dayfly_types::egress::{
    DenyReason, EgressMode, EgressPolicy, EgressRecordKind, HostName, InternalNetwork,
};

/// Where a connection wants to go, as far as rules speak of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Name {
        name: HostName,
        port: u16,
        /// What the guest speaks.
        kind: EgressRecordKind,
    },
    /// No name is known, or none counts.
    Address(SocketAddrV4),
}

impl Target {
    /// The name that counts.
    pub(crate) const fn name(&self) -> Option<&HostName> {
        match self {
            Self::Name { name, .. } => Some(name),
            Self::Address(_) => None,
        }
    }
}

/// What let it through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub(crate) rule: Option<String>,
    pub(crate) would_deny: bool,
}

impl From<Verdict<'_>> for Allowed {
    fn from(verdict: Verdict<'_>) -> Self {
        Self {
            rule: verdict.rule.map(str::to_owned),
            would_deny: verdict.would_deny,
        }
    }
}

/// # Errors
/// Why it is denied.
pub(crate) fn decide(
    policy: &EgressPolicy,
    internal: &[InternalNetwork],
    target: &Target,
) -> Result<Allowed, DenyReason> {
    let verdict = match target {
        Target::Name { name, port, kind } => {
            let verdict = decide_name(policy, name, *port)?;
            if policy.mode() == EgressMode::Allowlist && !fits(*kind, *port) {
                return Err(DenyReason::Protocol);
            }
            verdict
        }
        Target::Address(address) => {
            decide_address(policy, *address.ip(), address.port(), internal)?
        }
    };
    Ok(verdict.into())
}

/// A rule for port 80 means plain HTTP and one for 443 means TLS. On other ports a name can be read
/// from either.
const fn fits(kind: EgressRecordKind, port: u16) -> bool {
    !matches!(
        (kind, port),
        (EgressRecordKind::Tls, 80)
            | (EgressRecordKind::Http, 443)
            | (EgressRecordKind::Tcp | EgressRecordKind::Dns, _)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(port: u16, kind: EgressRecordKind) -> Target {
        Target::Name {
            name: HostName::parse("allowed.test").unwrap(),
            port,
            kind,
        }
    }

    fn policy(mode: &str) -> EgressPolicy {
        let rules = serde_json::json!([
            {"id": "all", "host": "allowed.test", "ports": [80, 443, 8080]}]);
        serde_json::from_value(serde_json::json!({"mode": mode, "rules": rules})).unwrap()
    }

    #[test]
    fn d16_what_is_spoken_fits_the_port_in_an_allowlist() {
        let list = policy("allowlist");
        for (port, kind, is_allowed) in [
            (80, EgressRecordKind::Http, true),
            (443, EgressRecordKind::Tls, true),
            (8080, EgressRecordKind::Http, true),
            (8080, EgressRecordKind::Tls, true),
            (80, EgressRecordKind::Tls, false),
            (443, EgressRecordKind::Http, false),
            (8080, EgressRecordKind::Tcp, false),
        ] {
            let verdict = decide(&list, &[], &target(port, kind));
            assert_eq!(verdict.is_ok(), is_allowed, "{port} {kind:?}");
            assert!(is_allowed || verdict == Err(DenyReason::Protocol));
            assert!(decide(&policy("observe"), &[], &target(port, kind)).is_ok());
        }
    }
}
