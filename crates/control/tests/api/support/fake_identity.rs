//! What the node in memory remembers of its database, and what it keeps without reading it.

use std::collections::BTreeMap;

use dayfly_node_api::{
    DatabaseMark, Greeting, IdentityReport, KeptSandbox, NodeError, NodeIdentity, SandboxReport,
};
use dayfly_types::{ErrorCode, SandboxId};

use super::fake_node::FakeNode;

#[derive(Debug, Clone)]
pub(super) struct FakeIdentity {
    incarnation: String,
    database: Option<DatabaseMark>,
    accepts_any: bool,
}

impl Default for FakeIdentity {
    fn default() -> Self {
        Self {
            incarnation: "first".to_owned(),
            database: None,
            accepts_any: false,
        }
    }
}

impl FakeNode {
    /// What the node last heard of its database.
    pub(crate) fn known_database(&self) -> Option<DatabaseMark> {
        self.with(|inner| inner.identity.database.clone())
    }

    /// Has the node know another database, or another state of its own.
    pub(crate) fn know_database(&self, change: impl FnOnce(&mut DatabaseMark)) {
        self.with(|inner| change(inner.identity.database.as_mut().unwrap()));
    }

    /// Empties the node, as somebody does who removes its directory.
    pub(crate) fn empty(&self) {
        self.with(|inner| {
            inner.sandboxes.clear();
            inner.identity = FakeIdentity {
                incarnation: "second".to_owned(),
                ..FakeIdentity::default()
            };
        });
    }

    /// Has the node lose the record of a sandbox, which it keeps then.
    pub(crate) fn keep_unread(&self, id: &str) -> SandboxReport {
        let id = SandboxId::parse(id).unwrap();
        self.with(|inner| {
            let report = inner.sandboxes.remove(&id).unwrap();
            inner.kept.push(KeptSandbox {
                id,
                project: None,
                reason: "its record cannot be read".to_owned(),
            });
            report
        })
    }

    /// Lets the node read everything again.
    pub(crate) fn read_again(&self, report: SandboxReport) {
        self.with(|inner| inner.kept.clear());
        self.put(report);
    }
}

impl NodeIdentity for FakeNode {
    async fn hello(&self, _: Greeting) -> Result<Greeting, NodeError> {
        Ok(Greeting::ours(BTreeMap::new()))
    }

    async fn identity(&self) -> Result<IdentityReport, NodeError> {
        Ok(self.with(|inner| {
            let identity = inner.identity.clone();
            IdentityReport {
                incarnation: identity.incarnation,
                database: identity.database,
                accepts_any: identity.accepts_any,
                // As the real one: what came before the first meeting came from whom it meets.
                is_empty: inner.identity.database.is_none()
                    || inner.sandboxes.is_empty() && inner.kept.is_empty(),
            }
        }))
    }

    async fn remember_database(&self, database: DatabaseMark) -> Result<(), NodeError> {
        self.with(|inner| {
            let known = inner.identity.database.as_ref();
            let is_older = known.is_some_and(|known| database.is_before(known));
            if is_older && !inner.identity.accepts_any {
                return Err(NodeError::new(ErrorCode::WrongState, "older"));
            }
            inner.identity.database = Some(database);
            inner.identity.accepts_any = false;
            Ok(())
        })
    }

    async fn accept_database(&self) -> Result<(), NodeError> {
        self.with(|inner| inner.identity.accepts_any = true);
        Ok(())
    }

    async fn forget_unreadable(&self, id: &SandboxId) -> Result<(), NodeError> {
        self.with(|inner| inner.kept.retain(|kept| kept.id != *id));
        Ok(())
    }
}
