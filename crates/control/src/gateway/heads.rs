//! What of a head goes on to the other side.

use std::net::IpAddr;

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HOST, HeaderName, REFERER,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::address::{Form, PortAddress};
use super::cookies;

/// What belongs to one connection and not to what is sent over it.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authorization"),
    HeaderName::from_static("proxy-connection"),
];
/// What a visitor could say about who it is, who brought it, or what we know it by; and what is
/// between it and us.
const NOT_FOR_SERVICES: [&str; 6] = [
    "expect",
    "forwarded",
    "http2-settings",
    "via",
    "x-api-key",
    "x-real-ip",
];
const NOT_FOR_SERVICES_PREFIXES: [&str; 2] = ["x-forwarded-", "x-dayfly-"];
/// What would act on everything of a host, and so on the API, when a service shares it.
const NOT_FOR_SHARED_HOSTS: [&str; 7] = [
    "alt-svc",
    "clear-site-data",
    "nel",
    "report-to",
    "reporting-endpoints",
    "service-worker-allowed",
    "strict-transport-security",
];
/// Gives a page an origin of its own, so that it cannot act as the API's.
const OWN_ORIGIN: &str = "sandbox allow-scripts allow-forms";
/// The one upgrade that is left out: behind it a visitor could send heads that nobody cleans. Who
/// offers it goes on without.
const PLAIN_HTTP2: &str = "h2c";

/// A header that is plain text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// What a request's head is changed for.
#[derive(Debug, Clone, Copy)]
pub struct Visitor<'a> {
    pub client: Option<IpAddr>,
    pub scheme: &'static str,
    /// Whether the visitor's `Authorization` is meant for the service.
    pub keeps_authorization: bool,
    pub upgrade: Option<&'a HeaderValue>,
}

/// The protocol that a request wants to change to.
#[must_use]
pub fn wanted_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let names_upgrade = tokens(headers, &CONNECTION).any(|token| token == "upgrade");
    let mut values = headers.get_all(UPGRADE).iter();
    let value = values.next()?;
    let is_known = value.to_str().is_ok_and(|text| {
        !text
            .split(',')
            .any(|name| name.trim().eq_ignore_ascii_case(PLAIN_HTTP2))
    });
    (names_upgrade && is_known && values.next().is_none()).then(|| value.clone())
}

/// Makes the head of a visitor's request one for the service.
pub fn clean_request(headers: &mut HeaderMap, visitor: Visitor<'_>) {
    let has_length = headers.contains_key(CONTENT_LENGTH);
    let is_chunked = headers.contains_key(TRANSFER_ENCODING);
    let host = headers.get(HOST).cloned();
    remove_hop_by_hop(headers);
    let unwanted: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_not_for_services(name.as_str()))
        .cloned()
        .collect();
    for name in &unwanted {
        headers.remove(name);
    }
    if !visitor.keeps_authorization {
        headers.remove(AUTHORIZATION);
    }
    cookies::remove_ours(headers);
    let tells_token = |value: &HeaderValue| {
        value
            .to_str()
            .map_or(true, |text| text.contains(super::token::TOKEN_START))
    };
    // Any of them: a visitor may send more than one.
    if headers.get_all(REFERER).iter().any(tells_token) {
        headers.remove(REFERER);
    }
    let mut set = |name: &'static str, value: Option<HeaderValue>| {
        if let Some(value) = value {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    let address = visitor
        .client
        .map(|client| client.to_canonical().to_string());
    set("host", host.clone());
    set("x-forwarded-host", host);
    let scheme = HeaderValue::from_static(visitor.scheme);
    set("x-forwarded-proto", Some(scheme));
    let address = address.and_then(|text| HeaderValue::from_str(&text).ok());
    set("x-forwarded-for", address);
    if is_chunked && !has_length {
        let chunked = HeaderValue::from_static("chunked");
        set("transfer-encoding", Some(chunked));
    }
    match visitor.upgrade {
        Some(protocol) => {
            set("connection", Some(HeaderValue::from_static("upgrade")));
            set("upgrade", Some(protocol.clone()));
        }
        None => set("connection", Some(HeaderValue::from_static("close"))),
    }
}

/// Makes the head of a service's answer one for the visitor.
pub fn clean_answer(
    headers: &mut HeaderMap,
    address: &PortAddress,
    method: &Method,
    status: StatusCode,
) {
    let is_chunked = headers.contains_key(TRANSFER_ENCODING);
    remove_hop_by_hop(headers);
    // The length of what is sent is counted anew; here it would be that of what is not sent.
    let is_bodiless = *method == Method::HEAD || status == StatusCode::NOT_MODIFIED;
    if is_chunked || !is_bodiless || headers.get_all(CONTENT_LENGTH).iter().count() > 1 {
        headers.remove(CONTENT_LENGTH);
    }
    cookies::confine(address, headers);
    match address.form {
        Form::Host => {}
        Form::Path => {
            for name in NOT_FOR_SHARED_HOSTS {
                headers.remove(name);
            }
            // Beside a policy of the service's own: browsers keep to both.
            let policy = HeaderValue::from_static(OWN_ORIGIN);
            headers.append(CONTENT_SECURITY_POLICY, policy);
        }
    }
}

/// Adds what makes an answer the beginning of another protocol.
pub(super) fn switch(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = tokens(headers, &CONNECTION)
        .filter_map(|token| HeaderName::try_from(token).ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

fn tokens<'a>(headers: &'a HeaderMap, name: &'a HeaderName) -> impl Iterator<Item = String> + 'a {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(|token| token.trim().to_ascii_lowercase())
}

/// Many a service takes `_` for `-` in the name of a header, so both are looked at alike.
fn is_not_for_services(name: &str) -> bool {
    let name = name.replace('_', "-");
    let mut prefixes = NOT_FOR_SERVICES_PREFIXES.iter();
    NOT_FOR_SERVICES.contains(&name.as_str()) || prefixes.any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use dayfly_types::SandboxId;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        let mut headers = HeaderMap::new();
        for (name, value) in pairs.iter().map(pair) {
            headers.append(name, value);
        }
        headers
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    const VISITOR: Visitor<'static> = Visitor {
        client: None,
        scheme: "http",
        keeps_authorization: false,
        upgrade: None,
    };

    #[test]
    fn a_service_learns_nothing_that_is_not_for_it() {
        let mut head = headers(&[
            ("host", "80-sb-x.localhost"),
            ("accept", "*/*"),
            ("authorization", "Bearer x"),
            ("connection", "keep-alive, X-Secret"),
            ("x-secret", "1"),
            ("x_forwarded_for", "1.2.3.4"),
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-user", "root"),
            ("x-dayfly-token", "t"),
            ("x-api-key", "k"),
            ("forwarded", "for=1.2.3.4"),
            ("x-real-ip", "1.2.3.4"),
            ("via", "1.1 a"),
            ("te", "trailers"),
            ("expect", "100-continue"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAM"),
            ("cookie", "dayfly_port_80_sb-x=t"),
            ("referer", "http://80-sb-x.localhost/"),
            ("referer", "http://80-sb-x.localhost/?dayfly_token=dpt_x"),
        ]);
        assert_eq!(wanted_upgrade(&head), None);
        let client = Some("::ffff:127.0.0.9".parse().unwrap());
        clean_request(&mut head, Visitor { client, ..VISITOR });
        let left = [
            "accept",
            "connection",
            "host",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
        ];
        assert_eq!(names(&head), left);
        assert_eq!(head["x-forwarded-for"], "127.0.0.9");
        assert_eq!(head["x-forwarded-host"], "80-sb-x.localhost");
        assert_eq!(head["connection"], "close");
    }

    #[test]
    fn an_upgrade_is_asked_for_again() {
        let mut head = headers(&[
            ("connection", "Keep-Alive, Upgrade"),
            ("upgrade", "WebSocket"),
        ]);
        let wanted = wanted_upgrade(&head).unwrap();
        let upgrade = Some(&wanted);
        clean_request(&mut head, Visitor { upgrade, ..VISITOR });
        assert_eq!(head["upgrade"], "WebSocket");
        assert_eq!(head["connection"], "upgrade");
        assert_eq!(wanted_upgrade(&headers(&[("upgrade", "websocket")])), None);
    }

    #[test]
    fn a_page_by_path_has_an_origin_of_its_own_and_no_power_over_the_host() {
        let mut head = headers(&[
            ("content-security-policy", "default-src 'self'"),
            ("clear-site-data", "\"*\""),
            ("strict-transport-security", "max-age=1"),
            ("content-length", "5"),
            ("transfer-encoding", "chunked"),
            ("connection", "close"),
        ]);
        let mut address = PortAddress {
            sandbox: SandboxId::parse("sb-x").unwrap(),
            port: 80,
            form: Form::Host,
        };
        let mut by_host = head.clone();
        clean_answer(&mut by_host, &address, &Method::GET, StatusCode::OK);
        assert_eq!(by_host.len(), 3);
        address.form = Form::Path;
        clean_answer(&mut head, &address, &Method::GET, StatusCode::OK);
        assert_eq!(names(&head), ["content-security-policy"]);
        let policies: Vec<_> = head.get_all(CONTENT_SECURITY_POLICY).iter().collect();
        assert_eq!(policies, ["default-src 'self'", OWN_ORIGIN]);
    }
}
