//! The sandbox of a name, which clients share and nobody deletes.

use dayfly_api::{ChangeLifecycle, CreateSandbox, Sandbox};
use dayfly_client::{Client, ClientError};
use dayfly_types::ErrorCode;

use crate::error::ToolError;
use crate::home::HomeSettings;
use crate::network;

/// The sandbox of a name, which is made when there is none. One that is there must have the network
/// that was asked for, and gets the time to live.
pub(crate) async fn named(
    client: &Client,
    settings: &HomeSettings,
    name: &str,
    ttl_seconds: Option<u64>,
) -> Result<Sandbox, ToolError> {
    let is_missing = |error: &ClientError| error.api_code() == Some(ErrorCode::NotFound);
    match client.get_sandbox(name).await {
        Ok(found) => return fitted(client, settings, found, ttl_seconds).await,
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(error.into()),
    }
    let wish = CreateSandbox {
        name: Some(name.to_owned()),
        // In the one request: who is cut off after it leaves nothing that ends by itself.
        persistent: Some(ttl_seconds.is_none()),
        ttl_seconds,
        ..settings.wish()
    };
    match client.create_when_ready(&wish, |_| {}).await {
        Ok(made) => Ok(made),
        // Somebody else was quicker.
        Err(error) if error.api_code() == Some(ErrorCode::AlreadyExists) => {
            let found = client.get_sandbox(name).await?;
            fitted(client, settings, found, ttl_seconds).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn fitted(
    client: &Client,
    settings: &HomeSettings,
    found: Sandbox,
    ttl_seconds: Option<u64>,
) -> Result<Sandbox, ToolError> {
    if let Some(allow) = &settings.allow {
        network::check(client, &found.id, allow).await?;
    }
    if ttl_seconds.is_some() || found.expires_at.is_some() {
        let change = ChangeLifecycle {
            ttl_seconds: Some(ttl_seconds),
            ..ChangeLifecycle::default()
        };
        client.set_lifecycle(&found.id, &change).await?;
    }
    Ok(found)
}
