//! Headers that speak of one connection and not of the message.

use http::header::{CONNECTION, EXPECT, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue};

const OF_ONE_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authorization"),
    HeaderName::from_static("proxy-authenticate"),
];

/// Whether a message asks for a WebSocket, the one protocol that a connection may change to.
pub(super) fn is_websocket(headers: &HeaderMap) -> bool {
    let mut upgrades = headers.get_all(UPGRADE).iter();
    let is_one = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"websocket");
    upgrades.next().is_some_and(is_one)
        && upgrades.next().is_none()
        && connection_options(headers).any(|option| option.eq_ignore_ascii_case("upgrade"))
}

fn connection_options(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(CONNECTION).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',').map(str::trim))
}

/// Removes what is about this connection only, by the standard's list and by the message's own.
pub(super) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = connection_options(headers)
        .filter_map(|option| HeaderName::from_bytes(option.as_bytes()).ok())
        .collect();
    for name in named.iter().chain(&OF_ONE_CONNECTION) {
        headers.remove(name);
    }
    // The library on the guest's side answers it when the body is wanted.
    headers.remove(EXPECT);
}

/// Asks the next one, or tells the guest, to change to WebSocket.
pub(super) fn ask_for_websocket(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    #[test]
    fn what_the_message_names_goes_as_well() {
        let mut fields = headers(&[
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("keep-alive", "5"),
            ("expect", "100-continue"),
            ("x-kept", "2"),
        ]);
        strip(&mut fields);
        assert_eq!(fields, headers(&[("x-kept", "2")]));
    }

    #[test]
    fn d9_only_a_websocket_is_an_upgrade() {
        let ask = |upgrade, connection| {
            is_websocket(&headers(&[
                ("upgrade", upgrade),
                ("connection", connection),
            ]))
        };
        assert!(ask("WebSocket", "keep-alive, Upgrade"));
        assert!(!ask("h2c", "Upgrade, HTTP2-Settings"));
        assert!(!ask("websocket, h2c", "Upgrade"));
        assert!(!ask("websocket", "keep-alive"));
    }
}
