//! Asks a provider what it offers and what it signs with.

use std::time::Duration;

use dayfly_types::limits::{PROVIDER_DEADLINE, PROVIDER_DOCUMENT_BYTES_MAX};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Url};
use serde::Deserialize;

use crate::address::{InvalidIssuer, Issuer, private_url};
use crate::keys::KeySet;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// Why nobody could be asked.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("the provider does not respond at {url}")]
    Unreachable {
        url: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("the provider could not be asked a moment ago; try again in a few seconds")]
    Lately,
    #[error("the provider did not respond within {} s", PROVIDER_DEADLINE.as_secs())]
    Slow,
    #[error("the provider responds with {status} at {url}")]
    Status { url: String, status: u16 },
    #[error("what the provider has at {url} is longer than {PROVIDER_DOCUMENT_BYTES_MAX} bytes")]
    TooLong { url: String },
    #[error("what the provider has at {url} cannot be read")]
    Unreadable {
        url: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("the provider calls itself {named}, not {wanted}")]
    OtherName { named: String, wanted: String },
    #[error("the provider names {url}, which cannot be used")]
    Address {
        url: String,
        #[source]
        source: InvalidIssuer,
    },
}

/// Why the certificates of an authority cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the certificates of the provider's authority cannot be used")]
pub struct InvalidAuthority(#[source] reqwest::Error);

/// What is asked with.
pub(crate) fn connector(authority: Option<&[u8]>) -> Result<Client, InvalidAuthority> {
    // Refused when the program has chosen one, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("dayflyd/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_DEADLINE)
        .timeout(PROVIDER_DEADLINE)
        // What the operator named is asked, and nobody else.
        .redirect(Policy::none())
        .no_proxy();
    if let Some(authority) = authority {
        let certificates = Certificate::from_pem_bundle(authority).map_err(InvalidAuthority)?;
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(InvalidAuthority)
}

/// Where a person's client asks the provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// For a code that is entered elsewhere; not every provider has it.
    pub device_authorization: Option<String>,
    pub token: Option<String>,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
    device_authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
}

/// What a provider has said of itself.
pub(crate) struct Offer {
    pub(crate) keys: KeySet,
    pub(crate) endpoints: Endpoints,
}

pub(crate) async fn offer(http: &Client, issuer: &Issuer) -> Result<Offer, FetchError> {
    let url = issuer.discovery();
    let text = document(http, &url).await?;
    let found: Discovery = serde_json::from_slice(&text).map_err(unreadable(&url))?;
    // Another one's document would bring another one's keys.
    if found.issuer != issuer.as_str() {
        return Err(FetchError::OtherName {
            named: found.issuer,
            wanted: issuer.to_string(),
        });
    }
    let text = document(http, &found.jwks_uri).await?;
    Ok(Offer {
        keys: KeySet::read(&text).map_err(unreadable(&found.jwks_uri))?,
        endpoints: Endpoints {
            device_authorization: found.device_authorization_endpoint,
            token: found.token_endpoint,
        },
    })
}

fn unreadable(url: &str) -> impl FnOnce(serde_json::Error) -> FetchError {
    let url = url.to_owned();
    |source| FetchError::Unreadable { url, source }
}

async fn document(http: &Client, url: &str) -> Result<Vec<u8>, FetchError> {
    let named = || url.to_owned();
    let address: Url = private_url(url).map_err(|source| FetchError::Address {
        url: named(),
        source,
    })?;
    let unreachable = |source: reqwest::Error| FetchError::Unreachable {
        url: named(),
        source: source.without_url(),
    };
    let mut response = http.get(address).send().await.map_err(unreachable)?;
    let status = response.status();
    if status.as_u16() != 200 {
        let status = status.as_u16();
        return Err(FetchError::Status {
            url: named(),
            status,
        });
    }
    let mut whole = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(unreachable)? {
        if whole.len() + piece.len() > PROVIDER_DOCUMENT_BYTES_MAX {
            return Err(FetchError::TooLong { url: named() });
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole)
}
