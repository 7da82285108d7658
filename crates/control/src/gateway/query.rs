//! The token in the query of an address.

const PARAMETER: &[u8] = b"dayfly_token";

/// What the query says behind `dayfly_token`, when it says so.
pub(crate) fn token(query: &str) -> Option<&str> {
    let mut pairs = query.split('&').filter(|pair| is_token(pair));
    let (_, value) = pairs.next()?.split_once('=')?;
    Some(value)
}

/// The query without our parameter; the rest stays as it came.
pub(crate) fn without_token(query: &str) -> String {
    if !query.split('&').any(is_token) {
        return query.to_owned();
    }
    let others: Vec<&str> = query.split('&').filter(|pair| !is_token(pair)).collect();
    others.join("&")
}

/// Whether a service would read this as our parameter.
fn is_token(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or_default().as_bytes();
    let mut rest = name;
    let mut expected = PARAMETER.iter();
    while let [first, after @ ..] = rest {
        let mut byte = *first;
        rest = after;
        if byte == b'%'
            && let Some((digits, after)) = rest.split_at_checked(2)
        {
            let mut decoded = [0];
            if hex::decode_to_slice(digits, &mut decoded).is_ok() {
                byte = decoded[0];
                rest = after;
            }
        }
        if expected.next() != Some(&byte) {
            return false;
        }
    }
    expected.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_leaves_no_trace() {
        assert_eq!(token("a=1&dayfly_token=x&b"), Some("x"));
        assert_eq!(token("dayfly%5Ftoken=x"), Some("x"));
        assert_eq!(token("dayfly_tokens=x&xdayfly_token=y"), None);
        assert_eq!(without_token("dayfly_token=x"), "");
        let odd = "a=%zz&dayfly_token=x&&dayfly%5ftoken=y&dayfly_token&b==";
        assert_eq!(without_token(odd), "a=%zz&&b==");
        assert_eq!(without_token("&&a"), "&&a");
    }
}
