//! [`NodeIdentity`] over HTTP.

use async_trait::async_trait;
use axum::body::Body;
use dayfly_types::SandboxId;
use http::Method;

use crate::client::{NodeClient, QUESTION_DEADLINE, json_body};
use crate::error::NodeError;
use crate::identity::{DatabaseMark, IdentityReport, NodeIdentity};

#[async_trait]
impl NodeIdentity for NodeClient {
    async fn identity(&self) -> Result<IdentityReport, NodeError> {
        self.call(Method::GET, "/identity", Body::empty(), QUESTION_DEADLINE)
            .await
    }

    async fn remember_database(&self, database: DatabaseMark) -> Result<(), NodeError> {
        let body = json_body(&database);
        self.call(Method::PUT, "/identity/database", body, QUESTION_DEADLINE)
            .await
    }

    async fn accept_database(&self) -> Result<(), NodeError> {
        let path = "/identity/accept";
        self.call(Method::POST, path, Body::empty(), QUESTION_DEADLINE)
            .await
    }

    async fn forget_unreadable(&self, id: &SandboxId) -> Result<(), NodeError> {
        let path = format!("/kept/{id}");
        self.call(Method::DELETE, &path, Body::empty(), QUESTION_DEADLINE)
            .await
    }
}
