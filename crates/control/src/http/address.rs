//! Addresses of requests.

use http::Uri;
use http::uri::PathAndQuery;

/// The same address with another path and query; `None` when those cannot be one.
pub(crate) fn with_path(address: &Uri, path_and_query: &str) -> Option<Uri> {
    let mut parts = address.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path_and_query).ok()?);
    Uri::from_parts(parts).ok()
}

/// A value for a query.
pub(crate) fn encode(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::super::parameter::decode;
    use super::*;

    #[test]
    fn what_is_encoded_reads_back() {
        for text in ["/workspace/a b", "/ü&path=%2F?#+", "/\n"] {
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
            assert!(!encode(text).contains(['&', '#', '+', ' ']));
        }
    }

    #[test]
    fn scheme_and_host_stay() {
        let address: Uri = "https://example.com/a?b".parse().unwrap();
        let changed = with_path(&address, "/c?d").unwrap();
        assert_eq!(changed.to_string(), "https://example.com/c?d");
    }
}
