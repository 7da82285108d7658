//! Serving one client over standard input and output.

use std::io;

use dayfly_mcp::{HomeKind, HomeSettings, McpServer, SandboxReach, stdio};
use dayfly_types::limits::{MCP_LEASE_SECONDS_DEFAULT, MCP_LEASE_SECONDS_MIN};

use super::args::ServeArgs;
use crate::dispatch::Session;
use crate::durations::seconds_up;
use crate::failure::CommandError;
use crate::signals::StopSignals;

/// Serves until the client closes its end, or somebody asks to stop.
pub(crate) async fn serve(session: &Session<'_>, args: &ServeArgs) -> Result<u8, CommandError> {
    let server = McpServer::new(session.client.clone(), settings(args)?);
    let mut signals = StopSignals::install()?;
    let stop = async {
        signals.next().await;
    };
    let served = stdio::serve(server, stop).await;
    served.map_err(|error| CommandError::local("cannot serve", io::Error::other(error)))?;
    Ok(0)
}

/// What the flags ask for.
pub(crate) fn settings(args: &ServeArgs) -> Result<HomeSettings, CommandError> {
    let ttl_seconds = args.ttl.map(seconds_up);
    if ttl_seconds.is_some_and(|seconds| seconds < MCP_LEASE_SECONDS_MIN) {
        return Err(CommandError::Usage {
            what: format!("--ttl must be at least {MCP_LEASE_SECONDS_MIN} seconds"),
            hint: "it is renewed while the client is there",
        });
    }
    let usual = HomeSettings::default();
    Ok(HomeSettings {
        kind: match &args.name {
            Some(name) => HomeKind::Named {
                name: name.clone(),
                ttl_seconds,
            },
            None => HomeKind::Own {
                lease_seconds: ttl_seconds.unwrap_or(MCP_LEASE_SECONDS_DEFAULT),
            },
        },
        template: args.template.clone().unwrap_or(usual.template),
        allow: (!args.allow.is_empty()).then(|| args.allow.clone()),
        reach: match args.all_sandboxes {
            true => SandboxReach::Project,
            false => SandboxReach::OwnOnly,
        },
    })
}
