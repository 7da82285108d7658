//! Looks again and again whether the kernel's rules are still ours.
//!
//! Nothing leaves a sandbox without rules, because its namespace has no way out; but it would not
//! be served either, and whoever removed them should be noticed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dayfly_host::net::{self, EgressExceptions, NetworkError, RulesVersion, Uplink};
use tokio_util::sync::CancellationToken;

use super::host_gate::HostEgress;

/// Rules are restored within twice this.
const PERIOD: Duration = Duration::from_secs(4);

/// What the namespace of the egress process is made from.
#[derive(Debug, Clone)]
pub struct EgressHome {
    pub path: PathBuf,
    pub instance: String,
    pub uplink: Uplink,
    pub exceptions: EgressExceptions,
}

impl EgressHome {
    /// Makes the namespace, or mends it.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub fn ensure(&self) -> Result<PathBuf, NetworkError> {
        let Self {
            path,
            instance,
            uplink,
            exceptions,
        } = self;
        net::ensure_egress_namespace(path, instance, uplink, exceptions).map(|made| made.path)
    }

    /// Removes what was made. What is not there is no error.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub fn remove(&self) -> Result<(), NetworkError> {
        net::remove_egress_namespace(&self.path, &self.instance, &self.uplink)
    }
}

/// Runs until `stop`.
pub async fn audit(gate: Arc<HostEgress>, home: EgressHome, stop: CancellationToken) {
    let mut known = Versions::new();
    loop {
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            () = stop.cancelled() => return,
        }
        let (slots, home) = (gate.slots(), home.clone());
        let looked = tokio::task::spawn_blocking(move || {
            look_at_home(&home);
            look(&slots, &known)
        });
        known = looked.await.unwrap_or_default();
    }
}

/// The version at which the rules of each slot were found in order.
type Versions = HashMap<u32, RulesVersion>;

fn look(slots: &[(u32, PathBuf)], known: &Versions) -> Versions {
    let mut found = Versions::new();
    for (slot, netns) in slots {
        match look_at_slot(&SlotRules { netns }, known.get(slot)) {
            Ok(Some(version)) => {
                found.insert(*slot, version);
            }
            Ok(None) => {}
            // Also when the slot was released in the meantime.
            Err(error) => {
                tracing::debug!(slot, error = crate::error_chain(&error), "not looked at");
            }
        }
    }
    found
}

/// The rules of one slot, as this part sees them.
trait Rules {
    type Version: Copy + PartialEq;

    fn version(&self) -> Result<Self::Version, NetworkError>;
    fn hold(&self) -> Result<bool, NetworkError>;
    fn restore(&self) -> Result<(), NetworkError>;
}

struct SlotRules<'a> {
    netns: &'a Path,
}

impl Rules for SlotRules<'_> {
    type Version = RulesVersion;

    fn version(&self) -> Result<RulesVersion, NetworkError> {
        net::slot_rules_version(self.netns)
    }

    fn hold(&self) -> Result<bool, NetworkError> {
        net::slot_rules_hold(self.netns)
    }

    fn restore(&self) -> Result<(), NetworkError> {
        let netns = self.netns.display();
        tracing::error!(%netns, "somebody changed the rules of a slot");
        net::restore_slot_rules(self.netns)
    }
}

/// The version at which the rules were found in order, if they were. It is read before the look: a
/// change that comes while we look has another one, and is seen the next time. What was restored is
/// looked at once more for the same reason.
fn look_at_slot<R: Rules>(
    rules: &R,
    known: Option<&R::Version>,
) -> Result<Option<R::Version>, NetworkError> {
    let version = rules.version()?;
    if known == Some(&version) || rules.hold()? {
        return Ok(Some(version));
    }
    rules.restore()?;
    Ok(None)
}

fn look_at_home(home: &EgressHome) {
    let EgressHome {
        path,
        instance,
        uplink,
        exceptions,
    } = home;
    let mended = match net::egress_rules_hold(path, instance, uplink, exceptions) {
        Ok(true) => return,
        Ok(false) => {
            // The host's own addresses are in them where something internal is open.
            tracing::error!(
                "somebody changed the rules behind the egress process, or the host has other \
                 addresses"
            );
            home.ensure().map(drop)
        }
        Err(error) => Err(error),
    };
    if let Err(error) = mended {
        let error = crate::error_chain(&error);
        tracing::error!(error, "the rules behind the egress process are in doubt");
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Rules that somebody removes at a chosen moment.
    #[derive(Default)]
    struct Watched {
        generation: Cell<u32>,
        are_lost: Cell<bool>,
        lost_after_looks: Cell<u32>,
        lost_after_restores: Cell<u32>,
    }

    impl Watched {
        fn lose_at(&self, countdown: &Cell<u32>) {
            if countdown.get() == 1 {
                self.are_lost.set(true);
                self.generation.set(self.generation.get() + 1);
            }
            countdown.set(countdown.get().saturating_sub(1));
        }
    }

    impl Rules for Watched {
        type Version = u32;

        fn version(&self) -> Result<u32, NetworkError> {
            Ok(self.generation.get())
        }

        fn hold(&self) -> Result<bool, NetworkError> {
            let held = !self.are_lost.get();
            self.lose_at(&self.lost_after_looks);
            Ok(held)
        }

        fn restore(&self) -> Result<(), NetworkError> {
            self.are_lost.set(false);
            self.generation.set(self.generation.get() + 1);
            self.lose_at(&self.lost_after_restores);
            Ok(())
        }
    }

    fn look_often(rules: &Watched) {
        let mut known = None;
        for _ in 0..4 {
            known = look_at_slot(rules, known.as_ref()).unwrap();
        }
        assert!(!rules.are_lost.get(), "never restored");
        assert_eq!(known, Some(rules.generation.get()), "looked at for ever");
    }

    #[test]
    fn rules_that_are_lost_while_they_are_looked_at_are_restored() {
        let rules = Watched::default();
        rules.lost_after_looks.set(1);
        look_often(&rules);
    }

    #[test]
    fn rules_that_are_lost_right_after_they_were_restored_are_restored() {
        let rules = Watched::default();
        rules.are_lost.set(true);
        rules.lost_after_restores.set(1);
        look_often(&rules);
    }
}
