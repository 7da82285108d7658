//! Looks again and again whether the kernel's rules are still ours.
//!
//! Nothing leaves a sandbox without rules, because its namespace has no way out; but it would not
//! be served either, and whoever removed them should be noticed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dayfly_host::net::{self, NetworkError, Uplink};
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
    pub resolvers: Vec<SocketAddr>,
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
            resolvers,
        } = self;
        net::ensure_egress_namespace(path, instance, uplink, resolvers).map(|made| made.path)
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
    let mut known = HashMap::new();
    loop {
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            () = stop.cancelled() => return,
        }
        let (slots, home) = (gate.slots(), home.clone());
        let looked = tokio::task::spawn_blocking(move || {
            look_at_home(&home);
            look(&slots, known)
        });
        known = looked.await.unwrap_or_default();
    }
}

/// The number of the rules of each slot that was found in order.
type Generations = HashMap<u32, u32>;

fn look(slots: &[(u32, PathBuf)], known: Generations) -> Generations {
    let mut found = Generations::new();
    for (slot, netns) in slots {
        match look_at_slot(netns, known.get(slot).copied()) {
            Ok(generation) => {
                found.insert(*slot, generation);
            }
            // Also when the slot was released in the meantime.
            Err(error) => {
                tracing::debug!(slot, error = crate::error_chain(&error), "not looked at");
            }
        }
    }
    found
}

fn look_at_slot(netns: &Path, known: Option<u32>) -> Result<u32, NetworkError> {
    let generation = net::slot_rules_generation(netns)?;
    if known == Some(generation) {
        return Ok(generation);
    }
    if !net::slot_rules_hold(netns)? {
        tracing::error!(netns = %netns.display(), "somebody changed the rules of a slot");
        net::restore_slot_rules(netns)?;
    }
    net::slot_rules_generation(netns)
}

fn look_at_home(home: &EgressHome) {
    let EgressHome {
        path,
        instance,
        uplink,
        resolvers,
    } = home;
    let mended = match net::egress_rules_hold(path, instance, uplink, resolvers) {
        Ok(true) => return,
        Ok(false) => {
            tracing::error!("somebody changed the rules behind the egress process");
            home.ensure().map(drop)
        }
        Err(error) => Err(error),
    };
    if let Err(error) = mended {
        let error = crate::error_chain(&error);
        tracing::error!(error, "the rules behind the egress process are in doubt");
    }
}
