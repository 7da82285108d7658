//! One request to a registry, wherever it leads, and what is done when it fails.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dayfly_types::limits::{
    REGISTRY_REDIRECTS_MAX, REGISTRY_RETRY_PAUSE_MAX, REGISTRY_TOKEN_BYTES_MAX, REGISTRY_TRIES_MAX,
    REGISTRY_URL_BYTES_MAX,
};
use reqwest::header::{
    ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, RANGE, RETRY_AFTER,
};
use reqwest::{Client, Response, StatusCode};
use serde::Deserialize;
use url::{Host, Url};

use super::challenge::{Challenge, choose};
use super::inside::InsideClients;
use super::resolve::{Addresses, inside_address};
use super::{RegistryCredentials, RegistryError, RegistryReach};

/// Before the second try; before each further one it is four times as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// How one try failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// May go better the next time; perhaps the other side said when.
    Again {
        error: RegistryError,
        after: Option<Duration>,
    },
    Final(RegistryError),
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        Self::Final(error)
    }
}

/// The tries of one operation.
#[derive(Debug, Default)]
pub(super) struct Tries {
    failed: u32,
}

impl Tries {
    /// Waits until it can be tried again.
    pub(super) async fn wait(&mut self, failure: Failure) -> Result<(), RegistryError> {
        let (error, after) = match failure {
            Failure::Again { error, after } => (error, after),
            Failure::Final(error) => return Err(error),
        };
        self.failed += 1;
        if self.failed >= REGISTRY_TRIES_MAX {
            return Err(error);
        }
        let own = FIRST_PAUSE * 4_u32.saturating_pow(self.failed - 1);
        tokio::time::sleep(after.unwrap_or(own).min(REGISTRY_RETRY_PAUSE_MAX)).await;
        Ok(())
    }
}

/// What a registry is asked for.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) url: Url,
    pub(super) accept: Option<&'static str>,
    /// Only what is from this byte on.
    pub(super) from: Option<u64>,
}

/// Asks one registry for one repository.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) outside: Client,
    /// For hosts that the operator allowed. Its connections are never those of the first.
    pub(super) allowed: Client,
    /// For networks that the operator opened.
    pub(super) inside: InsideClients,
    /// For plain HTTP.
    pub(super) loopback: Client,
    pub(super) reach: RegistryReach,
    pub(super) credentials: Option<RegistryCredentials>,
    /// Where the API of the registry is.
    pub(super) registry: Url,
    pub(super) scope: String,
    /// What the registry took last.
    pub(super) authorization: Mutex<Option<HeaderValue>>,
}

/// What can be shown of an address: signed ones are secrets.
pub(super) fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn address_of(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

pub(super) fn is_loopback(url: &Url) -> bool {
    let is_named = url.host_str() == Some("localhost");
    is_named || address_of(url).is_some_and(|address| address.is_loopback())
}

impl Asker {
    /// Gets what was asked for, signing in when the registry wants it.
    pub(super) async fn get(&self, question: &Question) -> Result<Response, Failure> {
        let known = self.known_authorization();
        let (mut response, is_registry) = self.follow(question, known).await?;
        if response.status() == StatusCode::UNAUTHORIZED && is_registry {
            let new = self.sign_in(response.headers()).await?;
            self.remember(new.clone());
            response = self.follow(question, Some(new)).await?.0;
        }
        self.check_status(response)
    }

    fn known_authorization(&self) -> Option<HeaderValue> {
        let known = self.authorization.lock();
        known.ok().and_then(|known| known.clone())
    }

    fn remember(&self, authorization: HeaderValue) {
        if let Ok(mut known) = self.authorization.lock() {
            *known = Some(authorization);
        }
    }

    fn check_status(&self, response: Response) -> Result<Response, Failure> {
        let host = shown(response.url());
        let status = response.status();
        match status.as_u16() {
            200 | 206 => Ok(response),
            429 | 500..=599 => Err(again(&response)),
            404 => Err(RegistryError::NotFound { host }.into()),
            401 | 403 if self.credentials.is_none() => {
                Err(RegistryError::NeedsCredentials { host }.into())
            }
            401 | 403 => Err(RegistryError::Denied { host }.into()),
            status => Err(RegistryError::Status { host, status }.into()),
        }
    }

    /// Also says whether it is the registry itself that responds: nobody else may ask for a
    /// password, or be told who asks.
    async fn follow(
        &self,
        question: &Question,
        authorization: Option<HeaderValue>,
    ) -> Result<(Response, bool), Failure> {
        let mut url = question.url.clone();
        let mut is_registry = true;
        for _ in 0..=REGISTRY_REDIRECTS_MAX {
            let mut headers = HeaderMap::new();
            if let Some(accept) = question.accept {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            if let Some(from) = question.from {
                let range = HeaderValue::try_from(format!("bytes={from}-"));
                headers.insert(RANGE, range.map_err(|_| RegistryError::Stopped)?);
            }
            if let Some(authorization) = authorization.as_ref().filter(|_| is_registry) {
                headers.insert(AUTHORIZATION, authorization.clone());
            }
            let response = self.send(&url, headers).await?;
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok((response, is_registry));
            }
            url = next_address(&url, &response)?;
            // One that leads away and back again is treated as having stayed away.
            is_registry &= url.origin() == self.registry.origin();
        }
        let host = shown(&self.registry);
        Err(RegistryError::TooManyRedirects { host }.into())
    }

    async fn send(&self, url: &Url, headers: HeaderMap) -> Result<Response, Failure> {
        let client = self.connector(url)?;
        let sent = client.get(url.clone()).headers(headers).send().await;
        sent.map_err(|error| broken(url, error))
    }

    /// What an address is asked with: chosen by host and port, which the resolver does not see.
    fn connector(&self, url: &Url) -> Result<Client, RegistryError> {
        let host = shown(url);
        let port = url.port_or_known_default().unwrap_or_default();
        let is_allowed = self.reach.allows(url.host_str().unwrap_or_default(), port);
        let is_plain = self.registry.scheme() == "http" && is_loopback(url);
        let (client, addresses) = match (url.scheme(), is_allowed) {
            ("https", true) => (self.allowed.clone(), Addresses::Any),
            ("https", false) if self.reach.has_networks_at(port) => {
                // What it is made of has made the others already.
                let client = self.inside.at(port).map_err(|_| RegistryError::Stopped)?;
                (client, self.inside.addresses(port))
            }
            ("https", false) => (self.outside.clone(), Addresses::Outside),
            ("http", true) if is_plain => (self.loopback.clone(), Addresses::Loopback),
            ("http", false) if is_plain => {
                let address = address_of(url).unwrap_or(Ipv4Addr::LOCALHOST.into());
                return Err(RegistryError::RefusedAddress { host, address });
            }
            _ => {
                let to = host.clone();
                return Err(RegistryError::NotPrivate { host, to });
            }
        };
        // The library dials an address without asking the resolver.
        match address_of(url).filter(|address| !addresses.contain(None, *address)) {
            Some(address) => Err(RegistryError::RefusedAddress { host, address }),
            None => Ok(client),
        }
    }

    async fn sign_in(&self, headers: &HeaderMap) -> Result<HeaderValue, Failure> {
        let host = shown(&self.registry);
        if self.credentials.is_some() && self.registry.scheme() != "https" {
            return Err(RegistryError::CredentialsInPlain { host }.into());
        }
        match (choose(headers), &self.credentials) {
            (None, _) => Err(RegistryError::Challenge { host }.into()),
            (Some(Challenge::Basic), None) => Err(RegistryError::NeedsCredentials { host }.into()),
            (Some(Challenge::Basic), Some(credentials)) => Ok(basic(credentials)?),
            (Some(Challenge::Bearer { realm, service }), _) => {
                self.token(&realm, service.as_deref()).await
            }
        }
    }

    fn token_address(&self, realm: &str, service: Option<&str>) -> Result<Url, RegistryError> {
        let host = shown(&self.registry);
        let Some(mut url) = usable(Url::parse(realm).ok()) else {
            return Err(RegistryError::Challenge { host });
        };
        if self.registry.scheme() == "https" && url.scheme() != "https" {
            let to = shown(&url);
            return Err(RegistryError::NotPrivate { host, to });
        }
        // What the challenge says of the scope is not asked for: it could be more than this.
        let service = service.map(|service| ("service", service));
        let mut query = url.query_pairs_mut();
        query
            .extend_pairs(service)
            .append_pair("scope", &self.scope);
        drop(query);
        Ok(url)
    }

    /// Asks for a token where the registry said. It is not followed from there to anywhere.
    async fn token(&self, realm: &str, service: Option<&str>) -> Result<HeaderValue, Failure> {
        let url = self.token_address(realm, service)?;
        let mut headers = HeaderMap::new();
        if let Some(credentials) = &self.credentials {
            headers.insert(AUTHORIZATION, basic(credentials)?);
        }
        let response = self.send(&url, headers).await?;
        match self.check_status(response) {
            Ok(response) => read_token(&url, response).await,
            Err(Failure::Final(
                RegistryError::Status { host, .. } | RegistryError::NotFound { host },
            )) => Err(RegistryError::Token { host }.into()),
            Err(failure) => Err(failure),
        }
    }
}

#[derive(Deserialize)]
struct TokenResponse {
    token: Option<String>,
    access_token: Option<String>,
}

async fn read_token(url: &Url, response: Response) -> Result<HeaderValue, Failure> {
    let unusable = || RegistryError::Token { host: shown(url) };
    let body = match read_body(response, REGISTRY_TOKEN_BYTES_MAX).await? {
        Some(body) => body,
        None => return Err(unusable().into()),
    };
    let read: TokenResponse = serde_json::from_slice(&body).map_err(|_| unusable())?;
    let token = read.token.or(read.access_token);
    let token = token
        .filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
    Ok(secret(&format!("Bearer {}", token.ok_or_else(unusable)?)).ok_or_else(unusable)?)
}

/// None when it is longer than it may be.
pub(super) async fn read_body(
    mut response: Response,
    most: usize,
) -> Result<Option<Vec<u8>>, Failure> {
    let url = response.url().clone();
    if response
        .content_length()
        .is_some_and(|length| length > most as u64)
    {
        return Ok(None);
    }
    let mut body = Vec::new();
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|error| broken(&url, error))?
    {
        if body.len() + piece.len() > most {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn basic(credentials: &RegistryCredentials) -> Result<HeaderValue, RegistryError> {
    let RegistryCredentials { username, password } = credentials;
    let text = format!(
        "Basic {}",
        STANDARD.encode(format!("{username}:{password}"))
    );
    secret(&text).ok_or(RegistryError::Stopped)
}

/// A connection that broke, unless it was never made because of where it would have led.
pub(super) fn broken(url: &Url, error: reqwest::Error) -> Failure {
    let host = shown(url);
    if let Some(address) = inside_address(&error) {
        return RegistryError::RefusedAddress { host, address }.into();
    }
    let source = error.without_url();
    Failure::Again {
        error: RegistryError::Unreachable { host, source },
        after: None,
    }
}

fn again(response: &Response) -> Failure {
    let after = response.headers().get(RETRY_AFTER);
    let seconds = after.and_then(|value| value.to_str().ok()?.parse().ok());
    Failure::Again {
        error: RegistryError::Status {
            host: shown(response.url()),
            status: response.status().as_u16(),
        },
        after: seconds.map(Duration::from_secs),
    }
}

/// An address without a user: the library would send one as a password of ours.
fn usable(url: Option<Url>) -> Option<Url> {
    url.filter(|url| {
        let is_short = url.as_str().len() <= REGISTRY_URL_BYTES_MAX;
        let has_user = !url.username().is_empty() || url.password().is_some();
        is_short && !has_user && url.has_host() && matches!(url.scheme(), "http" | "https")
    })
}

fn next_address(from: &Url, response: &Response) -> Result<Url, RegistryError> {
    let host = shown(from);
    let location = response.headers().get(LOCATION);
    let location = location.and_then(|value| value.to_str().ok());
    let next = location.and_then(|location| from.join(location).ok());
    let Some(next) = usable(next) else {
        return Err(RegistryError::Redirect { host });
    };
    if from.scheme() == "https" && next.scheme() != "https" {
        let to = shown(&next);
        return Err(RegistryError::NotPrivate { host, to });
    }
    Ok(next)
}
