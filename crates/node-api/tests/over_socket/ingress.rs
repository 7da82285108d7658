//! Connections into sandboxes over the socket.

use async_trait::async_trait;
use dayfly_node_api::{NodeError, NodeIngress, PortStream};
use dayfly_types::port::Listener;
use dayfly_types::{ErrorCode, SandboxId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::small_node::SmallNode;
use crate::start;

#[async_trait]
impl NodeIngress for SmallNode {
    async fn ports(&self, _: &SandboxId) -> Result<Vec<Listener>, NodeError> {
        Ok(vec![Listener {
            port: 8080,
            address: "127.0.0.1".to_owned(),
        }])
    }

    /// An echo on one port, nobody on the others.
    async fn connect_port(&self, _: &SandboxId, port: u16) -> Result<PortStream, NodeError> {
        if port != 8080 {
            return Err(NodeError::new(ErrorCode::NotFound, "nobody listens"));
        }
        let (here, there) = tokio::io::duplex(1024);
        tokio::spawn(async move {
            let (mut input, mut output) = tokio::io::split(there);
            tokio::io::copy(&mut input, &mut output).await.unwrap();
            output.shutdown().await.unwrap();
        });
        Ok(Box::new(here))
    }
}

#[tokio::test]
async fn bytes_go_through_a_port_and_a_refusal_is_one() {
    let world = start();
    let client = &world.client;
    let id = SandboxId::parse("sbx-one").unwrap();
    assert_eq!(client.ports(&id).await.unwrap()[0].port, 8080);
    let mut stream = client.connect_port(&id, 8080).await.unwrap();
    let sent: Vec<u8> = (0..=u8::MAX).cycle().take(1_000_000).collect();
    let (mut input, mut output) = tokio::io::split(&mut stream);
    let writing = async {
        output.write_all(&sent).await.unwrap();
        output.shutdown().await.unwrap();
    };
    let mut seen = Vec::new();
    let (_, read) = tokio::join!(writing, input.read_to_end(&mut seen));
    read.unwrap();
    assert!(seen == sent, "other bytes came back");
    let refusal = client.connect_port(&id, 1).await.err().unwrap();
    assert_eq!(refusal.code, ErrorCode::NotFound);
}
