//! Resolving a name that a policy lets through.

use std::sync::PoisonError;
use std::time::Instant;

use dayfly_types::egress::{DenyReason, EgressTarget, HostName, HostPattern};

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
    /// The addresses that may be dialled for a name that a rule, or no rule, let through. Never
    /// empty.
    ///
    /// # Errors
    /// [`NoAddress`].
    pub(crate) async fn resolve(
        &self,
        name: &HostName,
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
        let resolved = resolved.map_err(NoAddress::Failed)?;
        if resolved.addresses.is_empty() {
            return Err(NoAddress::Denied(DenyReason::NeverAddress));
        }
        Ok(resolved)
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
