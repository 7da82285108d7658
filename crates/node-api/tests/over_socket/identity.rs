//! What a node and a database say to each other, over the socket.

use async_trait::async_trait;
use dayfly_node_api::{DatabaseMark, IdentityReport, NodeError, NodeIdentity};
use dayfly_types::{ErrorCode, SandboxId};

use crate::small_node::SmallNode;
use crate::start;

fn mark(epoch: u64) -> DatabaseMark {
    DatabaseMark {
        id: "one".to_owned(),
        epoch,
        changes: 7,
    }
}

#[async_trait]
impl NodeIdentity for SmallNode {
    async fn identity(&self) -> Result<IdentityReport, NodeError> {
        Ok(IdentityReport {
            incarnation: "first".to_owned(),
            database: Some(mark(3)),
            accepts_any: true,
            is_empty: true,
        })
    }

    async fn remember_database(&self, database: DatabaseMark) -> Result<(), NodeError> {
        if database.is_before(&mark(3)) {
            return Err(NodeError::new(ErrorCode::WrongState, "older"));
        }
        Ok(())
    }

    async fn accept_database(&self) -> Result<(), NodeError> {
        Ok(())
    }

    async fn forget_unreadable(&self, id: &SandboxId) -> Result<(), NodeError> {
        Err(NodeError::not_found(id.to_string()))
    }
}

#[tokio::test]
async fn node_and_database_are_told_apart_over_the_socket() {
    let world = start();
    let client = &world.client;
    let identity = client.identity().await.unwrap();
    assert_eq!(identity, SmallNode::default().identity().await.unwrap());
    client.remember_database(mark(3)).await.unwrap();
    let older = client.remember_database(mark(2)).await.unwrap_err();
    assert_eq!(older.code, ErrorCode::WrongState);
    client.accept_database().await.unwrap();
    let id = SandboxId::parse("sb-local-a").unwrap();
    let absent = client.forget_unreadable(&id).await.unwrap_err();
    assert_eq!(absent.message, id.to_string());
}
