//! Addresses of requests.

use http::Uri;
use http::uri::PathAndQuery;

/// The same address with another path and query; `None` when those cannot be one.
pub(crate) fn with_path(address: &Uri, path_and_query: &str) -> Option<Uri> {
    let mut parts = address.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path_and_query).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_and_host_stay() {
        let address: Uri = "https://example.com/a?b".parse().unwrap();
        let changed = with_path(&address, "/c?d").unwrap();
        assert_eq!(changed.to_string(), "https://example.com/c?d");
    }
}
