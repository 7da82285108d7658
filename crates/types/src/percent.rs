//! Text within an address, as RFC 3986 writes it.

/// Everything but letters, digits, `-._~` and `/` becomes `%XX`: fit for a path and for the value
/// of a query.
#[must_use]
pub fn percent_encode(text: &str) -> String {
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

/// The text of a path or of a part of one; `None` when a `%` is not followed by two hexadecimal
/// digits, or the bytes are no UTF-8. A `+` is a `+` here: that it is a space holds for queries.
#[must_use]
pub fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_reads_back() {
        for text in ["/workspace/a b", "/ü&path=%2F?#+", "/\n"] {
            assert_eq!(percent_decode(&percent_encode(text)).as_deref(), Some(text));
            assert!(!percent_encode(text).contains(['&', '#', '+', ' ', '?']));
        }
    }

    #[test]
    fn what_nobody_encoded_is_refused() {
        for text in ["%", "%4", "%zz", "%+1", "%ff"] {
            assert_eq!(percent_decode(text), None, "{text}");
        }
    }
}
