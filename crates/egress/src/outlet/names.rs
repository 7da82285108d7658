//! Resolving a name that a policy lets through.

use std::net::Ipv4Addr;
use std::sync::PoisonError;
use std::time::Instant;

use dayfly_core::egress::{EgressApproach, may_reach};
use dayfly_types::egress::{DenyReason, EgressTarget, HostName, HostPattern, InternalNetwork};

use super::Outlet;
use crate::resolve::{ResolveError, Resolved};

/// Why a name that is allowed has no address to go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAddress {
    /// It is not let through after all.
    Denied(DenyReason),
    /// There is nothing, or nobody could be asked.
    Failed(ResolveError),
}

impl Outlet {
    /// The addresses that may be dialled at a port for a name that a rule, or no rule, let through;
    /// without a port, those that may be at some port. Never empty.
    ///
    /// # Errors
    /// [`NoAddress`].
    pub(crate) async fn resolve(
        &self,
        name: &HostName,
        port: Option<u16>,
        rule: Option<&str>,
    ) -> Result<Resolved, NoAddress> {
        if let Some(rule) = rule.filter(|rule| self.is_wildcard(rule)) {
            let mut names = self
                .wildcard_names
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if !names.admit(rule, name, Instant::now()) {
                return Err(NoAddress::Denied(DenyReason::Limit));
            }
        }
        // Names come in greetings and requests as well as in questions.
        if !self.resolver.knows(name) && !self.take_lookup() {
            return Err(NoAddress::Denied(DenyReason::Limit));
        }
        let resolved = self.resolver.resolve(name).await;
        let mut resolved = resolved.map_err(NoAddress::Failed)?;
        let policy = self.policy();
        let approach = EgressApproach {
            policy: &policy,
            name: Some(name),
            port,
        };
        resolved
            .addresses
            .retain(|address| may_reach(approach, *address, self.internal()));
        if resolved.addresses.is_empty() {
            return Err(NoAddress::Denied(DenyReason::NeverAddress));
        }
        Ok(resolved)
    }

    /// The internal network that a name, or an address without one, leads into by a rule, if it
    /// leads into one. Whether there is such a rule was looked at before.
    pub(crate) fn internal_network(
        &self,
        name: Option<&HostName>,
        port: Option<u16>,
        address: Ipv4Addr,
    ) -> Option<&str> {
        let mut networks = self.internal().iter();
        let found = networks.find(|network| network.opens(name, port, address));
        found.map(InternalNetwork::name)
    }

    fn is_wildcard(&self, rule: &str) -> bool {
        let policy = self.policy();
        let found = policy.rules().iter().find(|one| one.id == rule);
        found.is_some_and(|rule| match &rule.target {
            EgressTarget::Host(HostPattern::OneLabel(_) | HostPattern::AnyDepth(_)) => true,
            EgressTarget::Host(HostPattern::Exact(_)) | EgressTarget::Network(_) => false,
        })
    }
}
