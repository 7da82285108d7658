//! Links to services.

use std::time::Duration;

use dayfly_api::CreatePortLink;
use dayfly_types::ErrorCode;
use dayfly_types::limits::PORT_WAIT_MS_MAX;
use serde::Deserialize;
use serde_json::json;

use super::{Site, unless_cancelled};
use crate::error::ToolError;
use crate::output::ToolOutput;

#[derive(Debug, Deserialize)]
pub(super) struct PortArguments {
    port: u16,
    minutes: u64,
    timeout_seconds: f64,
}

pub(super) async fn expose_port(
    site: Site<'_>,
    arguments: PortArguments,
) -> Result<ToolOutput, ToolError> {
    let port = arguments.port;
    unless_cancelled(site.cancel, listening(site, &arguments)).await??;
    let wish = CreatePortLink {
        ttl_seconds: Some(arguments.minutes * 60),
        public: None,
    };
    let link = site
        .client
        .create_port_link(site.sandbox, port, &wish)
        .await?;
    let minutes = arguments.minutes;
    let text = format!("{} leads to port {port} for {minutes} minutes", link.url);
    let facts = json!({"port": port, "url": link.url, "path_url": link.path_url,
        "expires_at": link.expires_at});
    Ok(ToolOutput::text(text).structured(facts))
}

/// Waits until something listens: one request, which the server ends.
async fn listening(site: Site<'_>, arguments: &PortArguments) -> Result<(), ToolError> {
    let waiting = site
        .client
        .wait_for_port(site.sandbox, arguments.port, patience(arguments));
    match waiting.await {
        Ok(_) => Ok(()),
        Err(error) if error.api_code() == Some(ErrorCode::Timeout) => {
            let open = site.client.ports(site.sandbox).await?;
            Err(silent(arguments, &open))
        }
        Err(error) => Err(error.into()),
    }
}

/// As long as was asked for, and no longer than the server waits.
fn patience(arguments: &PortArguments) -> Duration {
    let most = Duration::from_millis(PORT_WAIT_MS_MAX);
    let asked = Duration::try_from_secs_f64(arguments.timeout_seconds);
    asked.map_or(most, |asked| asked.min(most))
}

fn silent(arguments: &PortArguments, ports: &[dayfly_api::Port]) -> ToolError {
    let open: Vec<String> = ports.iter().map(|found| found.port.to_string()).collect();
    let open = if open.is_empty() {
        "nothing listens".to_owned()
    } else {
        format!("open are: {}", open.join(", "))
    };
    let what = format!(
        "nothing listens on port {} after {} s; {open}",
        arguments.port,
        patience(arguments).as_secs_f64()
    );
    let hint = "start the program in the background with run_shell, and look at what it prints";
    ToolError::hinted(what, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_never_longer_than_the_server_takes() {
        let most = Duration::from_millis(PORT_WAIT_MS_MAX);
        for (timeout_seconds, waits) in [
            (1.5, Duration::from_millis(1500)),
            (1e9, most),
            (1e300, most),
            (f64::INFINITY, most),
        ] {
            let arguments = PortArguments {
                port: 1,
                minutes: 1,
                timeout_seconds,
            };
            assert_eq!(patience(&arguments), waits);
        }
    }
}
