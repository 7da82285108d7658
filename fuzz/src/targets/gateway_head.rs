//! Heads of visitors of the gateway, and of the services that answer them.
//!
//! What is promised for any head: no panic; a port is named by one host only; and what goes on has
//! nothing of ours in it and nothing that would act on what shares its host.

use dayfly_control::gateway::heads::{Visitor, clean_answer, clean_request, wanted_upgrade};
use dayfly_control::gateway::{Form, PortAddress, PreviewDomain};
use dayfly_types::SandboxId;
use http::header::{AUTHORIZATION, COOKIE, HOST, REFERER, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::{Inputs, texts};

const HEADERS_MAX: usize = 128;
const OURS: &str = "dayfly_port_";
const TOKEN_START: &[u8] = b"dpt_";

pub(super) fn check(input: &[u8]) {
    let Some(head) = parse(input) else {
        return;
    };
    let preview = PreviewDomain::default();
    if let Ok(Some(address)) = PortAddress::of(&preview, &head) {
        check_address(&head, &address);
    }
    check_request(&head.headers);
    let Ok(sandbox) = SandboxId::parse("sb-local-1") else {
        return;
    };
    for form in [Form::Host, Form::Path] {
        let address = PortAddress {
            sandbox: sandbox.clone(),
            port: 80,
            form,
        };
        check_answer(head.headers.clone(), &address);
    }
}

/// As the HTTP library makes a head of bytes.
fn parse(input: &[u8]) -> Option<Parts> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    request.parse(input).ok()?.is_complete().then_some(())?;
    let mut builder = http::Request::builder()
        .method(request.method?)
        .uri(request.path?);
    for field in request.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        builder = builder.header(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    Some(builder.body(()).ok()?.into_parts().0)
}

fn check_address(head: &Parts, address: &PortAddress) {
    let hosts: Vec<_> = head.headers.get_all(HOST).iter().collect();
    assert_eq!(hosts.len(), 1, "a port named by {hosts:?}");
    let start = format!("{}-{}.localhost", address.port, address.sandbox);
    match address.form {
        Form::Host => {
            let host = hosts[0].as_bytes().to_ascii_lowercase();
            assert!(
                host.starts_with(start.as_bytes()),
                "{hosts:?} is not {start}"
            );
        }
        Form::Path => assert!(head.uri.path().starts_with(&address.prefix())),
    }
    let Ok(target) = address.target(&head.uri) else {
        return;
    };
    assert!(target.authority().is_none() && target.path().starts_with('/'));
    let query = target.query().unwrap_or_default();
    let has_token = query.split('&').any(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        decoded(name) == b"dayfly_token"
    });
    assert!(!has_token, "the token goes on: {query:?}");
}

/// A name as services read it.
fn decoded(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes();
    let mut out = Vec::new();
    while let [first, rest @ ..] = bytes {
        bytes = rest;
        let digits = rest.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        let is_hex = |text: &&str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = digits
            .filter(is_hex)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (first, code) {
            (b'%', Some(code)) => {
                out.push(code);
                bytes = &rest[2..];
            }
            _ => out.push(*first),
        }
    }
    out
}

fn check_request(headers: &HeaderMap) {
    let mut cleaned = headers.clone();
    let upgrade = wanted_upgrade(headers);
    let visitor = Visitor {
        client: None,
        scheme: "http",
        keeps_authorization: false,
        upgrade: upgrade.as_ref(),
    };
    clean_request(&mut cleaned, visitor);
    for name in cleaned.keys() {
        let plain = name.as_str().replace('_', "-");
        let is_ours = matches!(name.as_str(), "x-forwarded-host" | "x-forwarded-proto");
        let is_forged = plain.starts_with("x-forwarded-") || plain.starts_with("x-dayfly-");
        let is_named = ["x-api-key", "forwarded", "x-real-ip", "te", "keep-alive"];
        assert!(
            is_ours || !is_forged && !is_named.contains(&plain.as_str()),
            "a service sees {name}"
        );
    }
    assert!(!cleaned.contains_key(AUTHORIZATION), "a service sees a key");
    let mut referers = cleaned.get_all(REFERER).iter();
    let tells = referers.any(|value| {
        let mut parts = value.as_bytes().windows(TOKEN_START.len());
        parts.any(|part| part == TOKEN_START)
    });
    assert!(!tells, "a service sees a token in the referer");
    let mut cookies = cleaned.get_all(COOKIE).iter();
    let tells = cookies.any(|value| {
        let mut pairs = value.as_bytes().split(|byte| *byte == b';');
        pairs.any(|pair| {
            pair.trim_ascii()
                .to_ascii_lowercase()
                .starts_with(OURS.as_bytes())
        })
    });
    assert!(!tells, "a service sees a cookie of ours");
}

fn check_answer(mut headers: HeaderMap, address: &PortAddress) {
    clean_answer(&mut headers, address, &Method::GET, StatusCode::OK);
    if address.form == Form::Path {
        for name in ["clear-site-data", "strict-transport-security", "alt-svc"] {
            assert!(!headers.contains_key(name), "{name} acts on the whole host");
        }
    }
    let prefix = address.prefix();
    for cookie in headers.get_all(SET_COOKIE) {
        let mut parts = cookie.as_bytes().split(|byte| *byte == b';');
        let pair = parts.next().unwrap_or_default().to_ascii_lowercase();
        assert!(
            !pair.trim_ascii().starts_with(OURS.as_bytes()),
            "a cookie of ours is set: {cookie:?}"
        );
        for part in parts {
            let part = part.trim_ascii();
            let name = part.split(|byte| *byte == b'=').next().unwrap_or_default();
            let name = name.trim_ascii().to_ascii_lowercase();
            assert!(name != b"domain", "a cookie for a domain: {cookie:?}");
            if name == b"path" && address.form == Form::Path {
                let value = &part[(name.len() + 1).min(part.len())..];
                let is_below = value.trim_ascii().starts_with(prefix.as_bytes());
                assert!(is_below, "a cookie beyond its prefix: {cookie:?}");
            }
        }
    }
}

pub(super) fn seeds() -> Inputs {
    texts(&[
        "GET /a?b=1&dayfly_token=dpt_x HTTP/1.1\r\nHost: 80-sb-local-1.localhost:7777\r\n\r\n",
        "GET /v1/sandboxes/sb-local-1/ports/80/http/x?dayfly%5ftoken=dpt_x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET http://80-sb-local-1.localhost/ HTTP/1.1\r\nHost: 81-sb-local-2.localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: 80-sb-local-1.localhost\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 1.2.3.4\r\nx_forwarded_host: a\r\nX-Api-Key: k\r\nForwarded: for=1\r\nAuthorization: Bearer x\r\nTE: trailers\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nCookie: a=1; dayfly_port_80_sb-local-1=dpt_x; b\r\nReferer: http://x/?dayfly_token=dpt_x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nReferer: a\r\nReferer: http://x/?dayfly_token=dpt_x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, X-Secret\r\nUpgrade: websocket\r\nX-Secret: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nSet-Cookie: dayfly_port_80_x=1\r\nSet-Cookie: a=b; Path=/; Domain=localhost; HttpOnly\r\nSet-Cookie: =dayfly_port_1_x=2\r\nClear-Site-Data: \"*\"\r\nStrict-Transport-Security: max-age=1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ])
}
