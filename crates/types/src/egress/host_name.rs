//! Names of hosts, and patterns of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// A host name in its one form: lower case ASCII, no dot at the end, at least two labels or
/// `localhost`-like single ones, never a number that some resolver would take for an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// Why a text is no host name or pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHost {
    #[error("a host name has 1 to 253 characters")]
    Length,
    #[error("each part of a host name between dots has 1 to 63 characters")]
    Label,
    #[error(
        "a host name has letters, digits, hyphens and underscores; write other scripts as xn--"
    )]
    Character,
    #[error("a part of a host name does not begin or end with a hyphen")]
    Hyphen,
    #[error("this is an address or a number, not a name")]
    Number,
    #[error("a wildcard stands alone in front: *.example.com (one part) or **.example.com (any)")]
    Wildcard,
    #[error("a wildcard needs a name with at least two parts behind it")]
    TooWide,
}

impl HostName {
    /// The canonical form of a name as a client wrote it: case and one dot at the end are dropped,
    /// nothing else is.
    ///
    /// # Errors
    /// [`InvalidHost`].
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return Err(InvalidHost::Length);
        }
        let name = text.to_ascii_lowercase();
        for label in name.split('.') {
            check_label(label)?;
        }
        // `0x7f.1`, `127.1` and `2130706433` are addresses to some resolvers.
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
            || last
                .strip_prefix("0x")
                .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if is_number {
            return Err(InvalidHost::Number);
        }
        Ok(Self(name))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many parts it has.
    #[must_use]
    pub fn labels(&self) -> usize {
        self.0.split('.').count()
    }
}

fn check_label(label: &str) -> Result<(), InvalidHost> {
    if label.is_empty() || label.len() > LABEL_BYTES_MAX {
        return Err(InvalidHost::Label);
    }
    let is_allowed = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
    };
    if !label.bytes().all(is_allowed) {
        return Err(InvalidHost::Character);
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(InvalidHost::Hyphen);
    }
    Ok(())
}

impl fmt::Display for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for HostName {
    type Error = InvalidHost;

    fn try_from(text: String) -> Result<Self, InvalidHost> {
        Self::parse(&text)
    }
}

impl From<HostName> for String {
    fn from(name: HostName) -> Self {
        name.0
    }
}

/// Which names a rule speaks of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostPattern {
    /// This name and no other.
    Exact(HostName),
    /// One part in front of the name, and not the name itself: `*.example.com`.
    OneLabel(HostName),
    /// One or more parts in front of the name, and not the name itself: `**.example.com`.
    AnyDepth(HostName),
}

impl HostPattern {
    #[must_use]
    pub fn matches(&self, name: &HostName) -> bool {
        let in_front = |suffix: &HostName| {
            let rest = name.as_str().strip_suffix(suffix.as_str())?;
            rest.strip_suffix('.').filter(|rest| !rest.is_empty())
        };
        match self {
            Self::Exact(exact) => exact == name,
            Self::OneLabel(suffix) => in_front(suffix).is_some_and(|rest| !rest.contains('.')),
            Self::AnyDepth(suffix) => in_front(suffix).is_some(),
        }
    }

    /// The name behind the wildcard, or the whole name.
    #[must_use]
    pub const fn name(&self) -> &HostName {
        match self {
            Self::Exact(name) | Self::OneLabel(name) | Self::AnyDepth(name) => name,
        }
    }
}

impl FromStr for HostPattern {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let (make, rest): (fn(HostName) -> Self, &str) =
            if let Some(rest) = text.strip_prefix("**.") {
                (Self::AnyDepth, rest)
            } else if let Some(rest) = text.strip_prefix("*.") {
                (Self::OneLabel, rest)
            } else {
                (Self::Exact, text)
            };
        if rest.contains('*') {
            return Err(InvalidHost::Wildcard);
        }
        let name = HostName::parse(rest)?;
        let pattern = make(name);
        match &pattern {
            Self::OneLabel(name) | Self::AnyDepth(name) if name.labels() < 2 => {
                Err(InvalidHost::TooWide)
            }
            Self::Exact(_) | Self::OneLabel(_) | Self::AnyDepth(_) => Ok(pattern),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => write!(formatter, "{name}"),
            Self::OneLabel(name) => write!(formatter, "*.{name}"),
            Self::AnyDepth(name) => write!(formatter, "**.{name}"),
        }
    }
}

impl TryFrom<String> for HostPattern {
    type Error = InvalidHost;

    fn try_from(text: String) -> Result<Self, InvalidHost> {
        text.parse()
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap()
    }

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn a_name_has_one_form() {
        assert_eq!(name("Example.COM."), name("example.com"));
        assert_eq!(
            name("xn--bcher-kva.example").as_str(),
            "xn--bcher-kva.example"
        );
        for (text, error) in [
            ("", InvalidHost::Length),
            (".", InvalidHost::Length),
            ("a..b", InvalidHost::Label),
            ("example.com..", InvalidHost::Label),
            ("bücher.example", InvalidHost::Character),
            ("exa mple.com", InvalidHost::Character),
            ("example.com\0.evil.test", InvalidHost::Character),
            ("a%00.example.com", InvalidHost::Character),
            ("user@example.com", InvalidHost::Character),
            ("example.com#x", InvalidHost::Character),
            ("-a.example.com", InvalidHost::Hyphen),
            ("127.0.0.1", InvalidHost::Number),
            ("2852039166", InvalidHost::Number),
            ("0xa9fea9fe", InvalidHost::Number),
            ("0251.0376.0251.0376", InvalidHost::Number),
        ] {
            assert_eq!(HostName::parse(text), Err(error), "{text:?}");
        }
        assert_eq!(HostName::parse(&"a".repeat(64)), Err(InvalidHost::Label));
        let long = ["abcdefg"; 32].join(".");
        assert_eq!(HostName::parse(&long), Err(InvalidHost::Length));
    }

    #[test]
    fn wildcards_have_edges() {
        let one = pattern("*.example.com");
        let any = pattern("**.example.com");
        assert!(one.matches(&name("a.example.com")));
        assert!(any.matches(&name("a.example.com")) && any.matches(&name("a.b.example.com")));
        for text in ["example.com", "evilexample.com", "example.com.evil.test"] {
            assert!(
                !one.matches(&name(text)) && !any.matches(&name(text)),
                "{text}"
            );
        }
        assert!(!one.matches(&name("a.b.example.com")));
        for text in [
            "*",
            "*.",
            "*.*.com",
            "a.*.com",
            "*a.example.com",
            "***.example.com",
        ] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
        for text in ["*.com", "**.com"] {
            assert_eq!(text.parse::<HostPattern>(), Err(InvalidHost::TooWide));
        }
    }

    proptest! {
        #[test]
        fn what_an_exact_rule_allows_is_the_name_itself(text in "\\PC{0,40}") {
            if let Ok(parsed) = HostName::parse(&text) {
                prop_assert!(HostPattern::Exact(parsed.clone()).matches(&parsed));
                prop_assert_eq!(HostName::parse(parsed.as_str()), Ok(parsed));
            }
        }

        #[test]
        fn a_pattern_survives_its_text(text in "(\\*\\*?\\.)?[a-z0-9-]{1,9}(\\.[a-z0-9-]{1,9}){0,3}") {
            if let Ok(parsed) = text.parse::<HostPattern>() {
                prop_assert_eq!(parsed.to_string().parse(), Ok(parsed));
            }
        }
    }
}
