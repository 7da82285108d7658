//! `dayfly version`.

use std::time::Duration;

use dayfly_api::Health;
use serde::Serialize;

use crate::dispatch::Session;
use crate::exit_status;
use crate::failure::CommandError;

/// A version is asked for when things are broken, so a server that is away must not hold it up.
const SERVER_DEADLINE: Duration = Duration::from_secs(3);

/// The object of `version --json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    client: &'a str,
    url: &'a str,
    /// Null: the server does not answer.
    server: Option<Health>,
}

pub(crate) async fn show(session: &Session<'_>) -> Result<u8, CommandError> {
    let client = env!("CARGO_PKG_VERSION");
    let url = session.client.url();
    let server = session.client.health(SERVER_DEADLINE).await;
    if session.printer.is_json() {
        session.printer.json(&Report {
            client,
            url,
            server: server.ok(),
        })?;
        return Ok(exit_status::OK);
    }
    session.printer.line(&format!("dayfly {client}"))?;
    match server {
        Ok(health) => {
            let words = format!("server {} ({url}, {})", health.version, health.status);
            session.printer.line(&crate::text::visible(&words))?;
            for condition in &health.conditions {
                let words = format!("{}: {}", condition.name, condition.detail);
                session.printer.note(&crate::text::visible(&words));
            }
        }
        Err(_) => session.printer.note(&format!("no server answers at {url}")),
    }
    Ok(exit_status::OK)
}
