//! What a guest is told about a request that went nowhere.

use bytes::Bytes;
use dayfly_types::egress::DenyReason;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{Either, Full};

use super::service::Answer;
use crate::protocol::SandboxRun;

const MARK: HeaderName = HeaderName::from_static("x-dayfly-egress");

/// A request that was not let through, or that nobody answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Denial<'a> {
    pub(super) lifecycle: &'a SandboxRun,
    pub(super) host: Option<&'a str>,
    pub(super) port: u16,
    pub(super) reason: Option<DenyReason>,
    /// It was allowed, and failed.
    pub(super) is_failure: bool,
}

impl Denial<'_> {
    pub(super) fn answer(&self) -> Answer {
        let (mark, code) = if self.is_failure {
            ("failed", "egress_failed")
        } else {
            ("denied", "egress_denied")
        };
        let body = serde_json::json!({"error": {
            "code": code,
            "message": self.message(),
            "host": self.host,
            "port": self.port,
            "reason": self.reason.map(DenyReason::as_str),
            "rule": null,
            "hint": self.hint(),
        }});
        let bytes = Bytes::from(format!("{body}\n"));
        let mut response = Response::new(Either::Right(Full::new(bytes)));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(MARK, HeaderValue::from_static(mark));
        if response.status() != StatusCode::FORBIDDEN {
            // What is not understood may leave bytes behind that would be taken for a request.
            let headers = response.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn status(&self) -> StatusCode {
        if self.is_failure {
            return StatusCode::BAD_GATEWAY;
        }
        match self.reason {
            Some(DenyReason::BadName | DenyReason::Protocol) => StatusCode::BAD_REQUEST,
            Some(DenyReason::Timeout) => StatusCode::REQUEST_TIMEOUT,
            Some(
                DenyReason::ModeDeny
                | DenyReason::NoRule
                | DenyReason::Port
                | DenyReason::NeverAddress
                | DenyReason::AbusePort
                | DenyReason::NoName
                | DenyReason::QuestionType
                | DenyReason::Limit
                | DenyReason::Unresolvable
                | DenyReason::NoUplink,
            )
            | None => StatusCode::FORBIDDEN,
        }
    }

    fn message(&self) -> &'static str {
        let Some(reason) = self.reason else {
            return "the host did not answer";
        };
        match reason {
            DenyReason::ModeDeny => "this sandbox may reach nothing",
            DenyReason::NoRule => "no rule of this sandbox names the host",
            DenyReason::Port => "a rule names the host, with other ports",
            DenyReason::NeverAddress => {
                "this sandbox may not reach this address whatever its rules say; a private one can \
                 be opened to its project by the operator alone"
            }
            DenyReason::AbusePort => "this port is shut because it is known for abuse",
            DenyReason::NoName => "no rule of this sandbox names the address",
            DenyReason::BadName => "the host of the request is not a name",
            DenyReason::Protocol => "the request is not well-formed, or does not fit the port",
            DenyReason::QuestionType => "questions of this type are not answered",
            DenyReason::Limit => "too many at once, or too fast",
            DenyReason::Timeout => "nothing understandable came in time",
            DenyReason::Unresolvable => "the name has no address",
            DenyReason::NoUplink => "this host has no way out",
        }
    }

    /// Only what a rule could change is worth a hint.
    fn hint(&self) -> Option<String> {
        let host = self.host?;
        let reason = self.reason.filter(|_| !self.is_failure)?;
        let is_a_matter_of_rules = matches!(
            reason,
            DenyReason::ModeDeny | DenyReason::NoRule | DenyReason::Port | DenyReason::NoName
        );
        let (sandbox, port) = (&self.lifecycle.sandbox, self.port);
        is_a_matter_of_rules
            .then(|| format!("to let it through: dayfly net allow {sandbox} {host}:{port}"))
    }
}

#[cfg(test)]
mod tests {
    use dayfly_types::{ProjectId, SandboxId};
    use http_body_util::BodyExt;

    use super::*;

    async fn told(reason: DenyReason) -> (StatusCode, serde_json::Value) {
        let lifecycle = SandboxRun {
            sandbox: SandboxId::parse("c1-abc").unwrap(),
            project: ProjectId::default_project(),
            slot: 0,
            start: 0,
        };
        let denial = Denial {
            lifecycle: &lifecycle,
            host: Some("evil.test"),
            port: 80,
            reason: Some(reason),
            is_failure: false,
        };
        let response = denial.answer();
        assert_eq!(response.headers()["x-dayfly-egress"], "denied");
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_denial_says_what_and_why_and_what_to_do() {
        let (status, body) = told(DenyReason::NoRule).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        let error = &body["error"];
        assert_eq!(error["code"], "egress_denied");
        assert_eq!(error["reason"], "no_rule");
        assert_eq!(error["host"], "evil.test");
        assert!(error["rule"].is_null());
        let hint = error["hint"].as_str().unwrap();
        assert!(
            hint.ends_with("dayfly net allow c1-abc evil.test:80"),
            "{hint}"
        );
        let (status, body) = told(DenyReason::BadName).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(body["error"]["hint"].is_null());
    }
}
