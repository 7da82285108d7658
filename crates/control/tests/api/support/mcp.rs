//! The MCP server as the daemon mounts it, and clients of it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use dayfly_client::{ApiKey, Client, ClientConfig};
use dayfly_control::admission::limit::{Permit, TooMany};
use dayfly_control::{MakeMcp, McpCaller, McpRefusal, McpService};
use dayfly_mcp::http::{AllowedHosts, CallerPlaces, HeldPlace, HttpCaller, HttpServer};
use dayfly_mcp::{HomeKind, HomeSettings, McpServer, SandboxReach};
use dayfly_types::limits::MCP_LEASE_SECONDS_DEFAULT;
use futures::future::BoxFuture;
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use serde_json::Value;

use super::World;

struct Mounted(HttpServer);

/// What the project of a caller may have at once.
struct Places(McpCaller);

fn held(place: Result<Permit, TooMany>) -> Option<HeldPlace> {
    let place = place.ok()?;
    Some(Box::new(place))
}

impl CallerPlaces for Places {
    fn session(&self) -> Option<HeldPlace> {
        held(self.0.session())
    }

    fn long_message(&self) -> Option<HeldPlace> {
        held(self.0.long_message())
    }
}

impl McpService for Mounted {
    fn serve(
        &self,
        caller: McpCaller,
        request: Request,
    ) -> BoxFuture<'static, Result<Response, McpRefusal>> {
        let server = self.0.clone();
        let caller = HttpCaller {
            key: caller.key_prefix().to_owned(),
            places: Arc::new(Places(caller)),
        };
        Box::pin(async move {
            let served = server.handle(&caller, request).await;
            served
                .map(|response| response.map(Body::new))
                .map_err(|refusal| McpRefusal {
                    code: refusal.code(),
                    message: refusal.to_string(),
                })
        })
    }
}

/// Mounts a server whose sandboxes are of the template that every world has.
pub(crate) fn mount() -> MakeMcp {
    Box::new(|router| {
        let client = Client::in_process(router).unwrap();
        let hosts = AllowedHosts::new(["box.example.org".to_owned()]);
        Arc::new(Mounted(HttpServer::new(client, settings(own()), hosts)))
    })
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
