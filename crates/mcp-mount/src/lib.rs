//! `/mcp` of the API: a client of the API in the same process, with the key of whoever asks.
//!
//! The MCP server knows only the client, and the API knows only that something is served there.
//! This joins them, for the daemon and for the tests of the API alike.
#![forbid(unsafe_code)]

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use dayfly_client::Client;
use dayfly_control::admission::limit::{Permit, TooMany};
use dayfly_control::{MakeMcp, McpCaller, McpRefusal, McpService};
use dayfly_mcp::HomeSettings;
use dayfly_mcp::http::{AllowedHosts, CallerPlaces, HeldPlace, HttpCaller, HttpServer, ReachedBy};
use futures::future::BoxFuture;

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
        mut request: Request,
    ) -> BoxFuture<'static, Result<Response, McpRefusal>> {
        let server = self.0.clone();
        request.extensions_mut().insert(ReachedBy {
            is_secure: caller.is_secure(),
            client: caller.client(),
        });
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

/// Makes it of the API that it uses. `hosts` are the names that the daemon is known by.
pub fn mount(hosts: Vec<String>, settings: HomeSettings) -> MakeMcp {
    Box::new(move |router| {
        let client = Client::in_process(router);
        #[expect(
            clippy::expect_used,
            reason = "no certificate is read and no address is given"
        )]
        let client = client.expect("a client without connections can be made");
        let hosts = AllowedHosts::new(hosts);
        Arc::new(Mounted(HttpServer::new(client, settings, hosts)))
    })
}
