//! Why a call failed.

use std::error::Error;
use std::io;
use std::time::Duration;

use dayfly_api::{Advice, ErrorBody, Health};
use dayfly_types::{ErrorCode, InvalidId};

/// Why a call failed. The variants say what the caller can know about the server's state.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server said no.
    #[error(transparent)]
    Api(Box<ApiError>),
    /// Nothing was sent.
    #[error("cannot reach {url}")]
    Connect {
        url: String,
        #[source]
        source: io::Error,
    },
    /// Nothing was sent.
    #[error("{url} has a certificate that this machine does not trust")]
    Untrusted {
        url: String,
        #[source]
        source: rustls::Error,
    },
    /// Nothing was sent.
    #[error("{url} does not speak TLS")]
    NoTls {
        url: String,
        #[source]
        source: rustls::Error,
    },
    /// The request may or may not have been carried out.
    #[error("no response from the server within {} s", limit.as_secs())]
    Timeout { limit: Duration },
    /// The request may or may not have been carried out.
    #[error("the connection to the server was lost")]
    Lost {
        #[source]
        source: io::Error,
    },
    /// The command was started, and how it ended was not told.
    #[error("the outcome of the command is unknown")]
    OutcomeUnknown {
        #[source]
        source: StreamLoss,
    },
    /// The answer does not fit the documented shape.
    #[error("cannot use the response of the server: {what}")]
    Protocol { what: String },
    /// Nothing was sent.
    #[error("not a valid name")]
    InvalidName {
        #[source]
        source: InvalidId,
    },
    /// The caller's own source of an upload failed.
    #[error("cannot read what is to be uploaded")]
    Upload {
        #[source]
        source: io::Error,
    },
}

/// Why a stream did not say how its command ended.
#[derive(Debug, thiserror::Error)]
pub enum StreamLoss {
    #[error("the stream ended without an exit status")]
    Ended,
    #[error("the stream was cut off")]
    Cut {
        #[source]
        source: io::Error,
    },
    #[error("the server said nothing for {} s", limit.as_secs())]
    Silent { limit: Duration },
    /// The server lost the command itself, and said so.
    #[error(transparent)]
    Told(Box<ApiError>),
}

/// A refusal, as the server worded it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status, or the one that goes with the code when a stream carried the error.
    pub status: u16,
    /// A stable word; empty when the answer was not in the documented shape.
    pub code: String,
    pub message: String,
    /// What to do about it, as the server says it.
    pub advice: Advice,
    pub request_id: Option<String>,
    /// When to ask again.
    pub retry_after: Option<Duration>,
    /// With `template_baking`: how far the bake is, 0 to 100.
    pub percent: Option<u8>,
    /// With a refusal of `GET /health` or `GET /ready`: all that is wrong.
    pub health: Option<Box<Health>>,
}

impl ApiError {
    /// The code, if this version knows it.
    #[must_use]
    pub fn known_code(&self) -> Option<ErrorCode> {
        ErrorCode::parse(&self.code)
    }

    /// Whether it is the key that was refused: not known, or not meant for this. A guest forbids things
    /// too, by the permissions of its files, with the same status.
    #[must_use]
    pub fn is_about_key(&self) -> bool {
        let speaks_of_key = |text: &str| text.contains("key");
        match self.status {
            401 => true,
            // A proxy in front of the server has no code.
            403 if self.code.is_empty() => true,
            403 => {
                speaks_of_key(&self.message)
                    || self.advice.hint.as_deref().is_some_and(speaks_of_key)
            }
            _ => false,
        }
    }

    /// A refusal that a stream carried.
    pub(crate) fn told(message: String, code: String) -> Self {
        Self {
            status: ErrorCode::parse(&code).map_or(500, ErrorCode::http_status),
            code,
            message,
            advice: Advice::default(),
            request_id: None,
            retry_after: None,
            percent: None,
            health: None,
        }
    }

    /// Reads the body of an answer that is not a success. Any body will do: a proxy may have
    /// written it.
    pub(crate) fn from_answer(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let health = serde_json::from_slice(body).ok().map(Box::new);
        match serde_json::from_slice::<ErrorBody>(body) {
            Ok(body) => Self {
                status,
                code: body.code,
                message: body.error,
                advice: body.advice,
                request_id: Some(body.request_id).filter(|id| !id.is_empty()),
                retry_after,
                percent: body.percent,
                health,
            },
            Err(_) => Self {
                status,
                code: String::new(),
                message: format!("HTTP status {status} without an error text"),
                advice: Advice {
                    hint: Some("is this the address of a Dayfly server?".to_owned()),
                    ..Advice::default()
                },
                request_id: None,
                retry_after,
                percent: None,
                health: None,
            },
        }
    }
}

impl ClientError {
    /// The server's code, when the server refused.
    #[must_use]
    pub fn api_code(&self) -> Option<ErrorCode> {
        match self {
            Self::Api(error) => error.known_code(),
            Self::Connect { .. }
            | Self::Untrusted { .. }
            | Self::NoTls { .. }
            | Self::Timeout { .. }
            | Self::Lost { .. }
            | Self::OutcomeUnknown { .. }
            | Self::Protocol { .. }
            | Self::InvalidName { .. }
            | Self::Upload { .. } => None,
        }
    }

    /// Whether the same call may do better in a moment. Says nothing about whether repeating it
    /// is safe.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Lost { .. } => true,
            Self::Api(error) => error.known_code() == Some(ErrorCode::NodeUnavailable),
            Self::Untrusted { .. }
            | Self::NoTls { .. }
            | Self::Timeout { .. }
            | Self::OutcomeUnknown { .. }
            | Self::Protocol { .. }
            | Self::InvalidName { .. }
            | Self::Upload { .. } => false,
        }
    }

    /// Sorts an error of the HTTP library.
    pub(crate) fn from_http(error: &reqwest::Error, url: &str) -> Self {
        let source = innermost(error);
        if error.is_connect() {
            let url = url.to_owned();
            return match tls_failure(error) {
                Some(source @ rustls::Error::InvalidCertificate(_)) => {
                    Self::Untrusted { url, source }
                }
                Some(source) => Self::NoTls { url, source },
                None => Self::Connect { url, source },
            };
        }
        if error.is_builder() {
            return Self::Protocol {
                what: source.to_string(),
            };
        }
        Self::Lost { source }
    }
}

/// What TLS had against a server.
fn tls_failure(error: &reqwest::Error) -> Option<rustls::Error> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(found) = cause {
        if let Some(tls) = tls_inside(found) {
            return Some(tls.clone());
        }
        cause = found.source();
    }
    None
}

/// An error of input and output does not give as its source what it is made of.
fn tls_inside<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    match error.downcast_ref::<io::Error>() {
        Some(outer) => tls_inside(outer.get_ref()?),
        None => error.downcast_ref(),
    }
}

/// The last cause of an error: the chain above it repeats the address and the library's layers.
pub(crate) fn innermost(error: &reqwest::Error) -> io::Error {
    let mut cause: &(dyn Error + 'static) = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    match cause.downcast_ref::<io::Error>() {
        Some(found) => match found.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::new(found.kind(), found.to_string()),
        },
        None => io::Error::other(cause.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_body_is_read_whole() {
        let body = br#"{"error":"baking","code":"template_baking","hint":"wait",
                        "request_id":"req-1","percent":40}"#;
        let error = ApiError::from_answer(503, Some(Duration::from_secs(2)), body);
        assert_eq!(error.known_code(), Some(ErrorCode::TemplateBaking));
        assert_eq!(error.percent, Some(40));
        assert_eq!(error.request_id.as_deref(), Some("req-1"));
        assert_eq!(error.to_string(), "baking");
    }

    #[test]
    fn a_key_that_was_refused_is_told_from_a_file_that_was() {
        let refusal = |status, code: &str, message: &str, hint: &str| {
            let body = format!(
                r#"{{"error":"{message}","code":"{code}","hint":"{hint}","request_id":"r"}}"#
            );
            ApiError::from_answer(status, None, body.as_bytes()).is_about_key()
        };
        assert!(refusal(401, "unauthorized", "no", ""));
        assert!(refusal(
            403,
            "forbidden",
            "this key does not have the scope",
            ""
        ));
        assert!(refusal(403, "forbidden", "no", "what this key may do"));
        assert!(!refusal(
            403,
            "forbidden",
            "the guest denies permission",
            ""
        ));
        assert!(!refusal(404, "not_found", "no such key", ""));
        assert!(ApiError::from_answer(403, None, b"<html>").is_about_key());
    }

    #[test]
    fn an_answer_of_somebody_else_is_still_an_error_with_a_text() {
        let error = ApiError::from_answer(502, None, b"<html>bad gateway</html>");
        assert_eq!(error.status, 502);
        assert_eq!(error.known_code(), None);
        assert!(error.to_string().contains("502"));
    }
}
