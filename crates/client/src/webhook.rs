//! A place on the network that takes what is sent to it, and is no server of ours.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Url;

use crate::client::connector;
use crate::config::{self, InvalidConfig};

/// How long one delivery may take.
const DELIVERY_DEADLINE: Duration = Duration::from_secs(30);

/// Why something was not delivered. It may have arrived all the same.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error("nothing was delivered")]
    Lost {
        #[source]
        source: reqwest::Error,
    },
    #[error("the response has HTTP status {status}")]
    Refused { status: u16 },
    #[error("no response within {} s", limit.as_secs())]
    Timeout { limit: Duration },
}

/// Why nothing can be delivered to an address. It is not named: it may hold a secret.
#[derive(Debug, thiserror::Error)]
pub enum InvalidWebhook {
    #[error("the address of the webhook is no http or https address")]
    Address,
    #[error("a webhook that is not on this host needs https")]
    Plain,
    #[error(transparent)]
    Http(#[from] InvalidConfig),
}

/// Where to deliver.
#[derive(Debug, Clone)]
pub struct Webhook {
    http: reqwest::Client,
    url: Url,
}

impl Webhook {
    /// Nothing is sent.
    ///
    /// # Errors
    /// [`InvalidWebhook`].
    pub fn new(url: &str) -> Result<Self, InvalidWebhook> {
        let url = Url::parse(url).map_err(|_| InvalidWebhook::Address)?;
        if !["http", "https"].contains(&url.scheme()) || !url.has_host() {
            return Err(InvalidWebhook::Address);
        }
        if !config::is_private(&url) {
            return Err(InvalidWebhook::Plain);
        }
        let http = connector(&url)?;
        Ok(Self { http, url })
    }

    /// Sends a body in one attempt; any status of success takes it over.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub async fn deliver(&self, headers: &[(&str, &str)], body: Bytes) -> Result<(), WebhookError> {
        let mut request = self.http.post(self.url.clone()).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let limit = DELIVERY_DEADLINE;
        let response = tokio::time::timeout(limit, request.send()).await;
        let response = response.map_err(|_| WebhookError::Timeout { limit })?;
        // The address may hold a secret, and errors go into logs.
        let response = response.map_err(|source| WebhookError::Lost {
            source: source.without_url(),
        })?;
        if response.status().is_success() {
            Ok(())
        } else {
            Err(WebhookError::Refused {
                status: response.status().as_u16(),
            })
        }
    }
}
