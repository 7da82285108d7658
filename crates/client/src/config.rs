//! Where the server is and who asks.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::HeaderValue;

/// What a [`crate::Client`] needs to know.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Such as `http://127.0.0.1:7070`, without `/v1`.
    pub url: String,
    /// Absent: only [`crate::Client::health`] will be answered.
    pub key: Option<ApiKey>,
}

impl ClientConfig {
    /// Whether nobody on the way can read what is sent: over https, or to this host.
    #[must_use]
    pub fn is_private(&self) -> bool {
        Url::parse(&self.url).is_ok_and(|url| is_private(&url))
    }
}

/// A bearer key. Its text is in no debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes a key as a person gives it: white space around it does not count.
    ///
    /// # Errors
    /// [`InvalidConfig::Key`] when it is empty or cannot stand in a header.
    pub fn parse(text: &str) -> Result<Self, InvalidConfig> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidConfig::Key);
        }
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn header(&self) -> Result<HeaderValue, InvalidConfig> {
        let text = format!("Bearer {}", self.0);
        let mut value = HeaderValue::from_str(&text).map_err(|_| InvalidConfig::Key)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// Why a client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum InvalidConfig {
    #[error("{url:?} is not an http or https address")]
    Url { url: String },
    #[error("{url:?} ends in /v1, which every request adds by itself")]
    Versioned { url: String },
    #[error("the API key is empty or holds characters that no key has")]
    Key,
    #[error("cannot set up the HTTP client")]
    Http {
        #[source]
        source: reqwest::Error,
    },
}

/// Reads the server's address.
pub(crate) fn parse_url(text: &str) -> Result<Url, InvalidConfig> {
    let invalid = || InvalidConfig::Url {
        url: text.to_owned(),
    };
    let url = Url::parse(text.trim()).map_err(|_| invalid())?;
    let is_http = matches!(url.scheme(), "http" | "https");
    let has_extras = url.query().is_some() || url.fragment().is_some();
    if !is_http || url.host_str().is_none() || has_extras || !url.username().is_empty() {
        return Err(invalid());
    }
    if url.path().trim_end_matches('/').ends_with("/v1") {
        return Err(InvalidConfig::Versioned {
            url: text.to_owned(),
        });
    }
    Ok(url)
}

/// Whether nobody on the way can read what is sent there.
pub(crate) fn is_private(url: &Url) -> bool {
    match url.scheme() {
        "https" => true,
        "http" => is_loopback(url),
        _ => false,
    }
}

/// Whether the address is this machine. A proxy cannot help there, and would see the key.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_trimmed_checked_and_never_shown() {
        let key = ApiKey::parse(" df_secret\n").unwrap();
        assert_eq!(key, ApiKey::parse("df_secret").unwrap());
        assert_eq!(format!("{key:?}"), "ApiKey(..)");
        assert!(!format!("{:?}", key.header().unwrap()).contains("secret"));
        for text in ["", " ", "a b", "a\nb", "é"] {
            assert!(ApiKey::parse(text).is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn only_plain_http_addresses_are_taken() {
        for text in ["http://127.0.0.1:7070", "https://dayfly.example/prefix/"] {
            assert!(parse_url(text).is_ok(), "{text:?} was refused");
        }
        for text in [
            "",
            "127.0.0.1:7070",
            "ftp://a",
            "http://",
            "http://a?b",
            "http://u:p@a",
            "http://a/v1",
            "https://a/prefix/v1/",
        ] {
            assert!(parse_url(text).is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn loopback_is_known_in_all_spellings() {
        for text in ["http://127.0.0.1:1", "http://localhost", "http://[::1]:1"] {
            assert!(is_loopback(&parse_url(text).unwrap()), "{text}");
        }
        assert!(!is_loopback(&parse_url("http://10.0.0.1").unwrap()));
    }
}
