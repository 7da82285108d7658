//! A person's ID token, by a code that they enter in a browser (RFC 8628): the way for a program
//! that runs where no browser is.

use std::time::{Duration, Instant};

use bytes::Bytes;
use dayfly_api::SignInOffer;
use reqwest::Url;
use serde::Deserialize;
use url::form_urlencoded::Serializer;

use crate::client::{BodyError, connector, read_body};
use crate::config::{self, InvalidConfig};

const REQUEST_DEADLINE: Duration = Duration::from_secs(30);
const RESPONSE_BYTES_MAX: usize = 256 << 10;
/// Between two questions, when the provider does not say.
const INTERVAL_DEFAULT: u64 = 5;
const INTERVAL_MAX: u64 = 60;
/// What a provider that is asked too often wants in addition.
const SLOWER: Duration = Duration::from_secs(5);
/// However long a provider would wait.
const CODE_SECONDS_MAX: u64 = 1800;
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Why there is no ID token.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error("the provider has no sign-in by code")]
    NotOffered,
    #[error("{address} is no https address, and not on this host")]
    Address { address: String },
    #[error(transparent)]
    Http(#[from] InvalidConfig),
    #[error("the provider does not respond")]
    Unreachable {
        #[source]
        source: reqwest::Error,
    },
    #[error("the provider did not understand, or was not understood: {what}")]
    Protocol { what: String },
    #[error("the provider refused: {what}")]
    Refused { what: String },
    #[error("the code was not entered in time")]
    Expired,
}

/// A code that waits to be entered.
#[derive(Debug)]
pub struct DeviceLogin {
    http: reqwest::Client,
    token_endpoint: Url,
    client_id: String,
    codes: Codes,
    until: Instant,
}

#[derive(Debug, Deserialize)]
struct Codes {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    error_description: Option<String>,
}

impl DeviceLogin {
    /// Asks the provider for a code.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub async fn begin(offer: &SignInOffer) -> Result<Self, DeviceError> {
        let endpoints = offer
            .device_authorization_endpoint
            .as_deref()
            .zip(offer.token_endpoint.as_deref());
        let (device, token) = endpoints.ok_or(DeviceError::NotOffered)?;
        let (device, token_endpoint) = (private_url(device)?, private_url(token)?);
        let http = connector(&device)?;
        let client_id = offer.client_id.clone();
        let scope = offer.scopes.join(" ");
        let fields = [("client_id", client_id.as_str()), ("scope", scope.as_str())];
        let codes: Codes = match ask(&http, device, &fields).await? {
            Ok(body) => parse(&body)?,
            Err(refusal) => return Err(refused(refusal)),
        };
        let lasts = Duration::from_secs(codes.expires_in.min(CODE_SECONDS_MAX));
        Ok(Self {
            http,
            token_endpoint,
            client_id,
            codes,
            until: Instant::now() + lasts,
        })
    }

    /// What to enter.
    #[must_use]
    pub fn user_code(&self) -> &str {
        &self.codes.user_code
    }

    /// Where to enter it; the second has the code in it already.
    #[must_use]
    pub fn pages(&self) -> (&str, Option<&str>) {
        let codes = &self.codes;
        let complete = codes.verification_uri_complete.as_deref();
        (&codes.verification_uri, complete)
    }

    /// Waits until the code was entered, and gives the ID token.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub async fn id_token(self) -> Result<String, DeviceError> {
        let seconds = self.codes.interval.unwrap_or(INTERVAL_DEFAULT);
        let mut pause = Duration::from_secs(seconds.clamp(1, INTERVAL_MAX));
        let fields = [
            ("grant_type", GRANT),
            ("device_code", self.codes.device_code.as_str()),
            ("client_id", self.client_id.as_str()),
        ];
        // The protocol has no event: the provider says how often it wants to be asked.
        while Instant::now() < self.until {
            tokio::time::sleep(pause).await;
            let response = ask(&self.http, self.token_endpoint.clone(), &fields).await;
            let refusal = match response {
                // It may be back before the code is over.
                Err(DeviceError::Unreachable { .. }) => continue,
                Err(error) => return Err(error),
                Ok(Ok(body)) => {
                    let what = "there is no ID token in its response".to_owned();
                    let tokens: Tokens = parse(&body)?;
                    return tokens.id_token.ok_or(DeviceError::Protocol { what });
                }
                Ok(Err(refusal)) => refusal,
            };
            match refusal.error.as_str() {
                "authorization_pending" => {}
                "slow_down" => pause += SLOWER,
                "expired_token" => return Err(DeviceError::Expired),
                _ => return Err(refused(refusal)),
            }
        }
        Err(DeviceError::Expired)
    }
}

fn refused(refusal: Refusal) -> DeviceError {
    let what = match refusal.error_description {
        Some(more) => format!("{}: {more}", refusal.error),
        None => refusal.error,
    };
    DeviceError::Refused { what }
}

fn private_url(text: &str) -> Result<Url, DeviceError> {
    let wrong = || DeviceError::Address {
        address: text.to_owned(),
    };
    let url = Url::parse(text).map_err(|_| wrong())?;
    config::is_private(&url).then_some(url).ok_or_else(wrong)
}

fn parse<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, DeviceError> {
    serde_json::from_slice(body).map_err(|error| DeviceError::Protocol {
        what: error.to_string(),
    })
}

/// The body of a response, or the refusal that it is.
async fn ask(
    http: &reqwest::Client,
    url: Url,
    fields: &[(&str, &str)],
) -> Result<Result<Bytes, Refusal>, DeviceError> {
    let unreachable = |source: reqwest::Error| DeviceError::Unreachable {
        source: source.without_url(),
    };
    let form = Serializer::new(String::new()).extend_pairs(fields).finish();
    let request = http
        .post(url)
        .timeout(REQUEST_DEADLINE)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept", "application/json")
        .body(form);
    let response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    let read = read_body(response, RESPONSE_BYTES_MAX).await;
    let whole = read.map_err(|error| match error {
        BodyError::Http(error) => unreachable(error),
        BodyError::TooLong => DeviceError::Protocol {
            what: format!("it said more than {RESPONSE_BYTES_MAX} bytes"),
        },
    })?;
    if status.is_success() {
        return Ok(Ok(whole));
    }
    match serde_json::from_slice(&whole) {
        Ok(refusal) => Ok(Err(refusal)),
        Err(_) => Err(DeviceError::Protocol {
            what: format!("status {}", status.as_u16()),
        }),
    }
}
