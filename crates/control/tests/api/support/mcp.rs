//! The MCP server as the daemon mounts it, and clients of it.

use dayfly_client::{ApiKey, Client, ClientConfig};
use dayfly_control::MakeMcp;
use dayfly_mcp::{HomeKind, HomeSettings, McpServer, SandboxReach};
use dayfly_types::limits::MCP_LEASE_SECONDS_DEFAULT;
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use serde_json::Value;

use super::World;

/// Mounts a server whose sandboxes are of the template that every world has.
pub(crate) fn mount() -> MakeMcp {
    dayfly_mcp_mount::mount(vec!["box.example.org".to_owned()], settings(own()))
}

pub(crate) fn own() -> HomeKind {
    HomeKind::Own {
        lease_seconds: MCP_LEASE_SECONDS_DEFAULT,
    }
}

pub(crate) fn settings(kind: HomeKind) -> HomeSettings {
    HomeSettings {
        kind,
        template: "base".to_owned(),
        allow: None,
        reach: SandboxReach::Project,
    }
}

/// A client over a pipe in memory.
pub(crate) struct McpClient {
    pub(crate) server: McpServer,
    pub(crate) peer: RunningService<RoleClient, ()>,
}

impl McpClient {
    pub(crate) async fn connect(world: &World, kind: HomeKind) -> Self {
        Self::with_key(world, kind, &world.key).await
    }

    pub(crate) async fn with_key(world: &World, kind: HomeKind, key: &str) -> Self {
        Self::with_settings(world, settings(kind), key).await
    }

    pub(crate) async fn with_settings(world: &World, settings: HomeSettings, key: &str) -> Self {
        let client = Client::new(ClientConfig {
            url: format!("http://{}", world.address),
            key: Some(ApiKey::parse(key).unwrap()),
        });
        let server = McpServer::new(client.unwrap(), settings);
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let served = server.clone();
        tokio::spawn(async move {
            let running = served.serve(ours).await.unwrap();
            let _ = running.waiting().await;
        });
        let peer = ().serve(theirs).await.unwrap();
        Self { server, peer }
    }

    pub(crate) async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let arguments = arguments.as_object().unwrap().clone();
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        self.peer.call_tool(request).await.unwrap()
    }

    /// The text of a call that must succeed.
    pub(crate) async fn text(&self, tool: &'static str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        let text = text_of(&result);
        assert_ne!(result.is_error, Some(true), "{text}");
        text
    }

    /// The text of a call that must fail.
    pub(crate) async fn error(&self, tool: &'static str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        let text = text_of(&result);
        assert_eq!(result.is_error, Some(true), "{text}");
        text
    }
}

/// The first text of a result.
pub(crate) fn text_of(result: &CallToolResult) -> String {
    let mut texts = result.content.iter().filter_map(|block| block.as_text());
    texts.next().unwrap().text.clone()
}
