//! Whether this database may decide what the node has to have.
//!
//! Node and database each remember the other. When the two memories do not fit, nothing is deleted,
//! nothing is marked as gone and nothing is adopted: the operator says which of both is right.

use std::sync::Arc;

use dayfly_node_api::{DatabaseMark, IdentityReport, NodeCalls, NodeError};
use dayfly_types::NodeId;

use crate::conditions::Condition;
use crate::control::Control;
use crate::store::{DatabaseIdentity, StoreError};

/// How node and database do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strangeness {
    /// Just made, beside a node that has something.
    NewDatabase,
    ForeignDatabase,
    OlderDatabase,
    /// The node lost what it had.
    NewNode,
}

impl Strangeness {
    const fn text(self) -> &'static str {
        match self {
            Self::NewDatabase => {
                "the database is new, and the node has sandboxes, snapshots or volumes of another \
                 one: its file was lost, emptied or moved. Nothing is deleted. Put it back, or say \
                 `dayflyd database accept` to have them adopted into this one"
            }
            Self::ForeignDatabase => {
                "the database belongs to another node. Nothing is deleted. Put the right one back, \
                 or say `dayflyd database accept` to have this node's sandboxes adopted into this \
                 one"
            }
            Self::OlderDatabase => {
                "the database is an older state of the one that the node knows, such as a copy that \
                 was put back. Nothing is deleted. Put the latest one back, or say `dayflyd database \
                 accept`: what is missing in it is adopted; revoked keys may work again in it"
            }
            Self::NewNode => {
                "the node is empty, or another one than the database knows. No row is deleted. Put \
                 its directory back, or say `dayflyd database accept` to give up what it had"
            }
        }
    }
}

/// Compares the two memories.
fn judge(
    ours: &DatabaseIdentity,
    theirs: &IdentityReport,
    node: &NodeId,
) -> Result<(), Strangeness> {
    if theirs.accepts_any {
        return Ok(());
    }
    let mark = mark_of(ours);
    match &theirs.database {
        Some(known) if known.id == ours.id && (ours.is_older || mark.is_before(known)) => {
            return Err(Strangeness::OlderDatabase);
        }
        Some(known) if known.id == ours.id => {}
        // A node without anything can lose nothing.
        Some(_) | None if theirs.is_empty => {}
        Some(_) | None if ours.is_new => return Err(Strangeness::NewDatabase),
        Some(_) => return Err(Strangeness::ForeignDatabase),
        None => {}
    }
    match &ours.node {
        Some((id, _)) if id != node.as_str() => Err(Strangeness::ForeignDatabase),
        Some((_, Some(incarnation))) if *incarnation != theirs.incarnation => {
            Err(Strangeness::NewNode)
        }
        None if ours.is_of_others => Err(Strangeness::ForeignDatabase),
        _ => Ok(()),
    }
}

fn mark_of(ours: &DatabaseIdentity) -> DatabaseMark {
    DatabaseMark {
        id: ours.id.clone(),
        epoch: ours.epoch,
        changes: ours.changes,
    }
}

/// Whether an epoch with the node has begun in this process.
#[derive(Debug, Default)]
pub(super) struct Acquaintance {
    has_begun: bool,
}

impl Acquaintance {
    /// Compares, and has both remember each other when they fit. Says whether they do.
    ///
    /// # Errors
    /// [`NodeError`] when the node cannot be asked. A database that cannot be read or written is
    /// logged, and is not known.
    pub(super) async fn renew(&mut self, control: &Arc<Control>) -> Result<bool, NodeError> {
        let theirs = control.node.identity().await?;
        let renewed = self.compare(control, &theirs).await;
        let mark = match renewed {
            Ok(Ok(mark)) => mark,
            Ok(Err(strangeness)) => {
                self.has_begun = false;
                let text = strangeness.text().to_owned();
                control.conditions.set(Condition::StrangeDatabase, text);
                return Ok(false);
            }
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "cannot compare database and node"
                );
                return Ok(false);
            }
        };
        if theirs.database.as_ref() != Some(&mark) || theirs.accepts_any {
            control.node.remember_database(mark).await?;
        }
        control.conditions.clear(Condition::StrangeDatabase);
        Ok(true)
    }

    async fn compare(
        &mut self,
        control: &Control,
        theirs: &IdentityReport,
    ) -> Result<Result<DatabaseMark, Strangeness>, StoreError> {
        let (store, node) = (&control.store, &control.node_id);
        let mut ours = store.identity(node).await?;
        if let Err(strangeness) = judge(&ours, theirs, node) {
            if strangeness == Strangeness::OlderDatabase && !ours.is_older {
                store.mark_older().await?;
            }
            return Ok(Err(strangeness));
        }
        if !self.has_begun || theirs.accepts_any {
            let known = theirs.database.as_ref().filter(|known| known.id == ours.id);
            ours.epoch = 1 + ours.epoch.max(known.map_or(0, |known| known.epoch));
            let incarnation = &theirs.incarnation;
            store.begin_epoch(ours.epoch, node, incarnation).await?;
            self.has_begun = true;
        }
        Ok(Ok(mark_of(&ours)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> NodeId {
        NodeId::parse("node-a").unwrap()
    }

    fn known(epoch: u64, changes: u64) -> DatabaseMark {
        DatabaseMark {
            id: "ours".to_owned(),
            epoch,
            changes,
        }
    }

    /// A database in its second epoch.
    fn ours() -> DatabaseIdentity {
        DatabaseIdentity {
            id: "ours".to_owned(),
            epoch: 2,
            changes: 10,
            is_new: false,
            is_older: false,
            node: Some(("node-a".to_owned(), Some("one".to_owned()))),
            is_of_others: false,
        }
    }

    fn theirs(database: Option<DatabaseMark>) -> IdentityReport {
        IdentityReport {
            incarnation: "one".to_owned(),
            database,
            accepts_any: false,
            is_empty: false,
        }
    }

    fn fresh() -> DatabaseIdentity {
        DatabaseIdentity {
            id: "fresh".to_owned(),
            epoch: 0,
            changes: 0,
            is_new: true,
            node: None,
            ..ours()
        }
    }

    #[test]
    fn a_database_that_went_on_is_known() {
        for mark in [known(2, 10), known(2, 9), known(1, 500)] {
            assert_eq!(judge(&ours(), &theirs(Some(mark)), &node()), Ok(()));
        }
    }

    #[test]
    fn one_that_knows_less_than_the_node_is_older_and_stays_so() {
        for mark in [known(3, 0), known(2, 11)] {
            let judged = judge(&ours(), &theirs(Some(mark)), &node());
            assert_eq!(judged, Err(Strangeness::OlderDatabase));
        }
        let used_since = DatabaseIdentity {
            changes: 5000,
            is_older: true,
            ..ours()
        };
        let judged = judge(&used_since, &theirs(Some(known(2, 11))), &node());
        assert_eq!(judged, Err(Strangeness::OlderDatabase));
    }

    #[test]
    fn a_new_one_beside_a_node_that_has_something_is_strange() {
        for database in [None, Some(known(2, 10))] {
            let judged = judge(&fresh(), &theirs(database.clone()), &node());
            assert_eq!(judged, Err(Strangeness::NewDatabase));
            let empty = IdentityReport {
                is_empty: true,
                ..theirs(database)
            };
            assert_eq!(judge(&fresh(), &empty, &node()), Ok(()));
        }
    }

    #[test]
    fn one_of_another_node_is_foreign_whatever_this_node_knows() {
        let foreign = DatabaseIdentity {
            id: "foreign".to_owned(),
            node: Some(("node-b".to_owned(), Some("two".to_owned()))),
            ..ours()
        };
        let empty = IdentityReport {
            is_empty: true,
            ..theirs(None)
        };
        for theirs in [theirs(None), theirs(Some(known(2, 10))), empty] {
            let judged = judge(&foreign, &theirs, &node());
            assert_eq!(judged, Err(Strangeness::ForeignDatabase));
        }
    }

    #[test]
    fn one_of_before_there_were_identities_is_known_unless_its_rows_are_of_others() {
        let upgraded = DatabaseIdentity {
            node: None,
            ..ours()
        };
        assert_eq!(judge(&upgraded, &theirs(None), &node()), Ok(()));
        let foreign = DatabaseIdentity {
            is_of_others: true,
            ..upgraded
        };
        let judged = judge(&foreign, &theirs(None), &node());
        assert_eq!(judged, Err(Strangeness::ForeignDatabase));
    }

    #[test]
    fn an_emptied_node_is_not_believed_and_the_operator_always_is() {
        let emptied = IdentityReport {
            incarnation: "another".to_owned(),
            is_empty: true,
            ..theirs(None)
        };
        assert_eq!(judge(&ours(), &emptied, &node()), Err(Strangeness::NewNode));
        let accepted = IdentityReport {
            accepts_any: true,
            ..emptied
        };
        assert_eq!(judge(&ours(), &accepted, &node()), Ok(()));
        let other = IdentityReport {
            accepts_any: true,
            ..theirs(Some(known(9, 9)))
        };
        assert_eq!(judge(&fresh(), &other, &node()), Ok(()));
    }
}
