//! [`NodeNetwork`] over HTTP.

use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use dayfly_types::SandboxId;
use http::Method;

use crate::client::{NodeClient, QUESTION_DEADLINE, json_body};
use crate::error::NodeError;
use crate::network::{NetworkLog, NetworkReport, NodeNetwork, ReadNetworkLog, SetNetwork};

/// The sandbox may be in the middle of a capture. Callers give up after 30 seconds, and what they
/// are told then should be how it ended.
const SET_DEADLINE: Duration = Duration::from_secs(20);

#[async_trait]
impl NodeNetwork for NodeClient {
    async fn set_network(
        &self,
        id: &SandboxId,
        wanted: SetNetwork,
    ) -> Result<NetworkReport, NodeError> {
        let path = format!("/sandboxes/{id}/network");
        self.call(Method::PUT, &path, json_body(&wanted), SET_DEADLINE)
            .await
    }

    async fn network(&self, id: &SandboxId) -> Result<NetworkReport, NodeError> {
        let path = format!("/sandboxes/{id}/network");
        self.call(Method::GET, &path, Body::empty(), QUESTION_DEADLINE)
            .await
    }

    async fn network_log(
        &self,
        id: &SandboxId,
        request: ReadNetworkLog,
    ) -> Result<NetworkLog, NodeError> {
        let path = format!("/sandboxes/{id}/network/log");
        let deadline = QUESTION_DEADLINE.saturating_add(request.wait);
        self.call(Method::POST, &path, json_body(&request), deadline)
            .await
    }
}
