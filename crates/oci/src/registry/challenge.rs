//! What a registry says about how to sign in: the header `WWW-Authenticate`.

use dayfly_types::limits::REGISTRY_CHALLENGE_BYTES_MAX;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// How a registry wants to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    Bearer {
        /// Where a token is got.
        realm: String,
        service: Option<String>,
    },
}

/// The one that is used: a token where the registry takes one. None when there is none that can be
/// read.
pub(super) fn choose(headers: &HeaderMap) -> Option<Challenge> {
    let mut basic = None;
    for value in headers.get_all(WWW_AUTHENTICATE) {
        let value = value.to_str().ok()?;
        match parse(value) {
            Some(bearer @ Challenge::Bearer { .. }) => return Some(bearer),
            Some(Challenge::Basic) => basic = Some(Challenge::Basic),
            None => {}
        }
    }
    basic
}

/// One challenge, as registries send them: several in one header are refused.
fn parse(text: &str) -> Option<Challenge> {
    if text.len() > REGISTRY_CHALLENGE_BYTES_MAX {
        return None;
    }
    let (scheme, rest) = text.split_once(' ').unwrap_or((text, ""));
    let parameters = parameters(rest)?;
    let find = |name: &str| {
        let mut same = parameters.iter().filter(|(one, _)| one == name);
        let first = same.next().map(|(_, value)| value.clone());
        // Two would be read as one by us and as the other by somebody else.
        same.next().is_none().then_some(first)
    };
    match scheme.to_ascii_lowercase().as_str() {
        "basic" => Some(Challenge::Basic),
        "bearer" => Some(Challenge::Bearer {
            realm: find("realm")??,
            service: find("service")?,
        }),
        _ => None,
    }
}

/// Names, in lower case, with values: `name=token` or `name="text"`, with commas between.
fn parameters(text: &str) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut rest = text.trim_matches(' ');
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let name = name.trim_matches(' ');
        if name.is_empty() || !name.bytes().all(is_token) {
            return None;
        }
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted_text(quoted)?,
            None => {
                let end = after.find([',', ' ']).unwrap_or(after.len());
                let (value, after) = after.split_at_checked(end)?;
                let is_plain = !value.is_empty() && value.bytes().all(is_token);
                is_plain.then(|| (value.to_owned(), after))?
            }
        };
        found.push((name.to_ascii_lowercase(), value));
        let after = after.trim_start_matches(' ');
        rest = match after.strip_prefix(',') {
            // A comma with nothing behind it.
            Some(next) if next.trim_matches(' ').is_empty() => return None,
            Some(next) => next.trim_start_matches(' '),
            None if after.is_empty() => after,
            None => return None,
        };
    }
    Some(found)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// What is between quotes, and what is behind them.
fn quoted_text(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((index, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, text.get(index + 1..)?)),
            '\\' => value.push(letters.next()?.1),
            ' '..='~' => value.push(letter),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(realm: &str, service: Option<&str>) -> Option<Challenge> {
        Some(Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
        })
    }

    #[test]
    fn what_registries_send_is_read() {
        let hub = r#"Bearer realm="https://a.example/token",service="r.example",scope="repository:a/b:pull,push""#;
        let wanted = bearer("https://a.example/token", Some("r.example"));
        assert_eq!(parse(hub), wanted);
        assert_eq!(
            parse(&hub.replace(',', " , ").replace("pull , push", "x")),
            wanted
        );
        assert_eq!(parse(r#"bearer Realm="a""#), bearer("a", None));
        assert_eq!(parse(r#"Bearer realm="a\"b\\c""#), bearer(r#"a"b\c"#, None));
        assert_eq!(parse("Bearer realm=a"), bearer("a", None));
        assert_eq!(
            parse(r#"Basic realm="Registry Realm""#),
            Some(Challenge::Basic)
        );
        assert_eq!(parse("Basic"), Some(Challenge::Basic));
    }

    #[test]
    fn what_cannot_be_read_in_one_way_is_refused() {
        let long = format!(
            r#"Bearer realm="{}""#,
            "a".repeat(REGISTRY_CHALLENGE_BYTES_MAX)
        );
        for text in [
            "",
            "Bearer",
            r#"Bearer service="a""#,
            r#"Bearer realm="a",realm="b""#,
            r#"Bearer realm="a",service="b",service="c""#,
            r#"Bearer realm="a"#,
            r#"Bearer realm="a\"#,
            r#"Bearer realm="a","#,
            r#"Bearer realm="a" service="b""#,
            r#"Bearer realm="a", Basic realm="b""#,
            "Bearer realm=",
            "Bearer =a",
            "Bearer realm=\"a\tb\"",
            "Bearer realm=https://a.example",
            "Bearer\trealm=a",
            "Digest realm=a",
            &long,
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_token_is_preferred_to_a_password() {
        let mut headers = HeaderMap::new();
        assert_eq!(choose(&headers), None);
        headers.append(WWW_AUTHENTICATE, "Negotiate".parse().unwrap());
        headers.append(WWW_AUTHENTICATE, "Basic realm=a".parse().unwrap());
        assert_eq!(choose(&headers), Some(Challenge::Basic));
        headers.append(WWW_AUTHENTICATE, "Bearer realm=a".parse().unwrap());
        assert_eq!(choose(&headers), bearer("a", None));
    }
}
