//! [`NodeIngress`] over HTTP, with an upgrade for each connection.

use async_trait::async_trait;
use axum::body::Body;
use dayfly_types::SandboxId;
use http::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;

use crate::client::{NodeClient, QUESTION_DEADLINE, WAKING_DEADLINE, within};
use crate::error::NodeError;
use crate::ingress::{NodeIngress, PROTOCOL, PortStream};
use dayfly_types::port::Listener;

#[async_trait]
impl NodeIngress for NodeClient {
    async fn ports(&self, id: &SandboxId) -> Result<Vec<Listener>, NodeError> {
        let path = format!("/sandboxes/{id}/ports");
        self.call(Method::GET, &path, Body::empty(), QUESTION_DEADLINE)
            .await
    }

    async fn connect_port(&self, id: &SandboxId, port: u16) -> Result<PortStream, NodeError> {
        let request = Request::get(format!("http://node/sandboxes/{id}/ports/{port}/stream"))
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, PROTOCOL)
            .body(Body::empty())
            .map_err(|_| NodeError::internal("cannot form a request to the node"))?;
        let connect = async {
            let response = self.send(request).await?;
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                return Err(NodeError::internal("the node did not open a connection"));
            }
            let upgraded = hyper::upgrade::on(response).await;
            upgraded.map_err(|_| NodeError::unavailable("the node's connection broke off"))
        };
        let upgraded = within(WAKING_DEADLINE, connect).await?;
        Ok(Box::new(TokioIo::new(upgraded)))
    }
}
