//! Cookies: ours, which no service may see or set, and those of services, which stay with them.

use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};

use super::address::{Form, PortAddress};
use super::preview::VisitScheme;

/// What the name of each of our cookies begins with.
const PREFIX: &[u8] = b"dayfly_port_";
/// Values of our cookie that one request can offer: another host may have set some, too.
const CANDIDATES_MAX: usize = 4;

fn name_of(address: &PortAddress) -> String {
    format!("dayfly_port_{}_{}", address.port, address.sandbox)
}

/// The tokens that came in our cookie for this port.
pub(super) fn tokens(address: &PortAddress, headers: &HeaderMap) -> Vec<String> {
    let name = name_of(address);
    let values = headers.get_all(COOKIE).iter();
    let pairs = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    let ours = pairs.filter_map(|pair| {
        let pair = std::str::from_utf8(pair.trim_ascii()).ok()?;
        let (found, token) = pair.split_once('=')?;
        (found == name).then(|| token.to_owned())
    });
    ours.take(CANDIDATES_MAX).collect()
}

/// The cookie that carries a token from now on.
pub(super) fn set_cookie(
    address: &PortAddress,
    token: &str,
    seconds: u64,
    scheme: VisitScheme,
) -> Option<HeaderValue> {
    let (name, prefix) = (name_of(address), address.prefix());
    let secure = match scheme {
        VisitScheme::Https => "; Secure",
        VisitScheme::Http => "",
    };
    let text = format!(
        "{name}={token}; HttpOnly; SameSite=Lax; Path={prefix}/; Max-Age={seconds}{secure}"
    );
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Takes our cookies out of a request; the others stay, in one header: HTTP/2 lets a visitor send
/// them in many, which services do not expect.
pub(super) fn remove_ours(headers: &mut HeaderMap) {
    let values = headers.get_all(COOKIE).iter();
    let pairs = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    let kept: Vec<&[u8]> = pairs
        .map(<[u8]>::trim_ascii)
        .filter(|pair| !pair.is_empty() && !is_ours(pair))
        .collect();
    let kept = HeaderValue::from_bytes(&kept.join(&b"; "[..]));
    headers.remove(COOKIE);
    if let Some(kept) = kept.ok().filter(|value| !value.is_empty()) {
        headers.insert(COOKIE, kept);
    }
}

/// Keeps the cookies that a service sets to itself: none with a name of ours, none for a domain,
/// and by path only below its own prefix, for all that share the API's host.
pub(super) fn confine(address: &PortAddress, headers: &mut HeaderMap) {
    let confined: Vec<HeaderValue> = headers
        .get_all(SET_COOKIE)
        .iter()
        .filter(|value| !is_ours(value.as_bytes()))
        .filter_map(|value| HeaderValue::from_bytes(&confine_one(address, value.as_bytes())).ok())
        .collect();
    headers.remove(SET_COOKIE);
    for value in confined {
        headers.append(SET_COOKIE, value);
    }
}

fn confine_one(address: &PortAddress, cookie: &[u8]) -> Vec<u8> {
    let mut pieces = cookie.split(|byte| *byte == b';');
    let mut confined = pieces.next().unwrap_or_default().to_vec();
    for piece in pieces {
        let (name, value) = attribute(piece);
        // Every domain that a browser would take reaches further than the service's own host.
        if name.eq_ignore_ascii_case(b"domain") {
            continue;
        }
        confined.push(b';');
        if address.form == Form::Path && name.eq_ignore_ascii_case(b"path") {
            let below: &[u8] = if value.starts_with(b"/") { value } else { b"/" };
            confined.extend_from_slice(b" Path=");
            confined.extend_from_slice(address.prefix().as_bytes());
            confined.extend_from_slice(below);
        } else {
            confined.extend_from_slice(piece);
        }
    }
    confined
}

fn attribute(piece: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = piece.splitn(2, |byte| *byte == b'=');
    let name = parts.next().unwrap_or_default().trim_ascii();
    (name, parts.next().unwrap_or_default().trim_ascii())
}

/// Whether a browser, or a server, could take this for a cookie of ours. A cookie without a name is
/// sent as its value alone, which can look like a name and a value.
fn is_ours(pair: &[u8]) -> bool {
    let is_filler = |byte: &u8| *byte == b'=' || byte.is_ascii_whitespace();
    let start = pair.iter().take_while(|byte| is_filler(byte)).count();
    let name = &pair[start..];
    name.get(..PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

#[cfg(test)]
mod tests {
    use dayfly_types::SandboxId;

    use super::*;

    fn address(form: Form) -> PortAddress {
        PortAddress {
            sandbox: SandboxId::parse("sb-x").unwrap(),
            port: 80,
            form,
        }
    }

    #[test]
    fn our_cookies_are_taken_out_and_others_stay() {
        let mut headers = HeaderMap::new();
        let first = "a=1; dayfly_port_80_sb-x=one;b=\"2;3\"; =dayfly_port_80_sb-x=two";
        headers.append(COOKIE, HeaderValue::from_static(first));
        let second = "dayfly_port_9_sb-y=three";
        headers.append(COOKIE, HeaderValue::from_static(second));
        assert_eq!(tokens(&address(Form::Host), &headers), ["one"]);
        remove_ours(&mut headers);
        let left: Vec<_> = headers.get_all(COOKIE).iter().collect();
        assert_eq!(left, ["a=1; b=\"2; 3\""]);
    }

    #[test]
    fn a_service_s_cookies_stay_with_it() {
        let confined = |form, cookie: &'static str| {
            let mut headers = HeaderMap::new();
            headers.append(SET_COOKIE, HeaderValue::from_static(cookie));
            confine(&address(form), &mut headers);
            let value = headers.get(SET_COOKIE)?;
            Some(value.to_str().unwrap().to_owned())
        };
        let wide = "a=1; Path=/; DOMAIN = .localhost; Secure";
        let expected = "a=1; Path=/; Secure".to_owned();
        assert_eq!(confined(Form::Host, wide), Some(expected));
        let expected = "a=1; Path=/v1/sandboxes/sb-x/ports/80/http/; Secure".to_owned();
        assert_eq!(confined(Form::Path, wide), Some(expected));
        let expected = "a=1; Path=/v1/sandboxes/sb-x/ports/80/http/".to_owned();
        assert_eq!(confined(Form::Path, "a=1; path=v1"), Some(expected));
        for ours in [
            "dayfly_port_80_sb-x=evil",
            " Dayfly_port_=evil",
            "=dayfly_port_80_sb-x=evil",
            "dayfly_port_80_sb-x",
        ] {
            assert_eq!(confined(Form::Host, ours), None, "{ours}");
            assert_eq!(confined(Form::Path, ours), None, "{ours}");
        }
    }

    #[test]
    fn our_cookie_reaches_no_further_than_its_port() {
        let text = |form, scheme| {
            let value = set_cookie(&address(form), "t", 60, scheme).unwrap();
            value.to_str().unwrap().to_owned()
        };
        assert_eq!(
            text(Form::Host, VisitScheme::Http),
            "dayfly_port_80_sb-x=t; HttpOnly; SameSite=Lax; Path=/; Max-Age=60"
        );
        let path = text(Form::Path, VisitScheme::Https);
        assert!(path.contains("Path=/v1/sandboxes/sb-x/ports/80/http/;"));
        assert!(path.ends_with("; Secure"));
    }
}
