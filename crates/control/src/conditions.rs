//! Why the control plane is not well, by name: what `GET /health` tells.
//!
//! A part that finds something wrong sets a condition and clears it when it is over. Anybody may
//! read them, so a detail says why and names no path, project, key or sandbox.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

macro_rules! conditions {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $remedy:literal;)*) => {
        /// Something that is wrong with this control plane, its database or its node.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Condition {
            $($(#[$doc])* $variant,)*
        }

        impl Condition {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word that programs may match. Once released it is never renamed.
            pub(crate) const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// What the operator can do about it.
            pub(crate) const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }
        }
    };
}

conditions! {
    /// The database takes no writes.
    StoreUnwritable = "store_unwritable",
        "make room on the disk of the database, or end the program that holds it locked";
    /// The audit record takes no entries.
    AuditUnwritable = "audit_unwritable",
        "make room on the disk of the database; keys and projects can be changed again when entries are written";
    /// The database is not the one that this node knows.
    StrangeDatabase = "strange_database",
        "put the right database back, or tell the daemon that this one is meant; docs/operate.md says how";
    /// The node process does not answer.
    NodeUnreachable = "node_unreachable",
        "look at the log of the node process; it is started again by its supervisor";
    /// The node's disk is full.
    DiskFull = "disk_full",
        "delete snapshots, volumes or hibernated sandboxes, or give the data directory more room";
}

/// The conditions that hold now. There is at most one of each name.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    held: Mutex<BTreeMap<Condition, String>>,
}

impl Conditions {
    fn held(&self) -> MutexGuard<'_, BTreeMap<Condition, String>> {
        // Entries are added and removed whole.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that something is wrong, and why. May be repeated, also with another detail.
    pub(crate) fn set(&self, name: Condition, detail: String) {
        let before = self.held().insert(name, detail.clone());
        if before.is_none() {
            let (condition, remedy) = (name.as_str(), name.remedy());
            tracing::warn!(condition, detail, remedy, "degraded");
        }
    }

    /// Says that it is over. May be repeated.
    pub(crate) fn clear(&self, name: Condition) {
        if self.held().remove(&name).is_some() {
            tracing::info!(condition = name.as_str(), "no longer degraded");
        }
    }

    /// What is wrong now, and why.
    pub(crate) fn current(&self) -> Vec<(Condition, String)> {
        let held = self.held();
        let names = Condition::ALL.iter();
        let told = names.filter_map(|name| Some((*name, held.get(name)?.clone())));
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_holds_from_its_setting_to_its_clearing() {
        let conditions = Conditions::default();
        assert!(conditions.current().is_empty());
        conditions.set(Condition::DiskFull, "first".to_owned());
        conditions.set(Condition::DiskFull, "second".to_owned());
        conditions.set(Condition::StoreUnwritable, "full".to_owned());
        let told = [
            (Condition::StoreUnwritable, "full".to_owned()),
            (Condition::DiskFull, "second".to_owned()),
        ];
        assert_eq!(conditions.current(), told);
        conditions.clear(Condition::StoreUnwritable);
        conditions.clear(Condition::StoreUnwritable);
        assert_eq!(conditions.current(), told[1..]);
    }
}
