//! What control asks of a node about the network of a sandbox.

use dayfly_node_api::{
    EgressDecisionPage, NetworkLogPage, NetworkReport, NodeError, NodeNetwork, ReadNetworkLog,
    SetNetwork,
};
use dayfly_types::{SandboxId, limits};

use crate::egress::LogError;
use crate::node::Node;
use crate::sandbox::Request;

impl NodeNetwork for Node {
    async fn set_network(
        &self,
        id: &SandboxId,
        wanted: SetNetwork,
    ) -> Result<NetworkReport, NodeError> {
        let handle = self.find(id)?;
        handle
            .ask(|reply| Request::SetNetwork { wanted, reply })
            .await
    }

    async fn network(&self, id: &SandboxId) -> Result<NetworkReport, NodeError> {
        self.find(id)?.ask(Request::Network).await
    }

    async fn network_log(
        &self,
        id: &SandboxId,
        request: ReadNetworkLog,
    ) -> Result<NetworkLogPage, NodeError> {
        self.find(id)?;
        let max = request.max.min(limits::EGRESS_RECORDS_MAX);
        let wait = request.wait.min(limits::EGRESS_LOG_WAIT_MAX);
        let logs = &self.parts.network_logs;
        let page = logs.follow(id, request.after, max, wait).await;
        let page = page.map_err(|error: LogError| {
            crate::failure::node_error("the network log could not be read", &error)
        })?;
        // What lies between the caller's last and the oldest that is kept is gone.
        let dropped = page.oldest.saturating_sub(request.after.saturating_add(1));
        Ok(NetworkLogPage {
            records: page.records,
            oldest: page.oldest,
            latest: page.latest,
            lost: page.lost + dropped,
        })
    }
    async fn egress_decisions(
        &self,
        request: ReadNetworkLog,
    ) -> Result<EgressDecisionPage, NodeError> {
        let max = request.max.clamp(1, limits::EGRESS_DECISIONS_AT_ONCE_MAX);
        let wait = request.wait.min(limits::EGRESS_LOG_WAIT_MAX);
        let page = self
            .parts
            .egress_spool
            .follow(request.after, max, wait)
            .await;
        page.map_err(|error| {
            crate::failure::node_error("the egress decisions could not be read", &error)
        })
    }
}
