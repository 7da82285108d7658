//! One wished-for rule, in its canonical form.

use dayfly_api::{RuleParts, RuleWish};
use dayfly_types::egress::{
    EgressTarget, HostName, HostPattern, InvalidHost, InvalidNetwork, InvalidPolicy, Ipv4Network,
    Ports,
};

use crate::network::presets;

/// How much of a caller's text an error repeats.
const SHOWN_CHARACTERS_MAX: usize = 80;

/// A rule that was understood, and has no name yet unless its caller gave one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParsedRule {
    pub(crate) id: Option<String>,
    pub(crate) target: EgressTarget,
    pub(crate) ports: Ports,
}

/// What an entry of a list stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Rule(ParsedRule),
    /// One of the presets that are lists.
    Preset(&'static str),
    /// The preset that is a mode.
    Public,
}

/// Why an entry is no rule: what is wrong with it, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RuleError {
    #[error("is empty; leave it out, or name a host")]
    Empty,
    #[error("is a URL; a rule has the host's name alone, such as {host}")]
    Url { host: String },
    #[error("is IPv6, by which nothing leaves a sandbox; name the host, or an IPv4 range")]
    Ipv6,
    #[error("stands for everything; use mode public to reach every public address")]
    Everything,
    #[error("is not a host name: {0}")]
    Host(InvalidHost),
    #[error("is not a host name in any script; write it as its xn-- form")]
    Script,
    #[error(
        "is too wide: {suffix} is a public suffix, below which anybody can have a name; \
         name the hosts or domains that you mean"
    )]
    PublicSuffix { suffix: HostName },
    #[error("is not a range of addresses: {0}")]
    Network(InvalidNetwork),
    #[error("has a port that is none; write it as name:443 or name:22,443")]
    Port,
    #[error("has ports that cannot be: {0}")]
    Ports(InvalidPolicy),
    #[error("has neither host nor cidr; give one of them")]
    NoTarget,
    #[error("has both host and cidr; make two rules of it")]
    TwoTargets,
    #[error("names a preset that there is not; there are {known}")]
    Preset { known: String },
}

/// Reads an entry of a list of rules.
///
/// # Errors
/// [`RuleError`].
pub(crate) fn parse(wish: &RuleWish) -> Result<Entry, RuleError> {
    match wish {
        RuleWish::Text(text) => parse_text(text),
        RuleWish::Rule(parts) => parse_parts(parts).map(Entry::Rule),
    }
}

/// An entry as an error names it.
pub(crate) fn shown(wish: &RuleWish) -> String {
    let text = match wish {
        RuleWish::Text(text) => text,
        RuleWish::Rule(RuleParts {
            host: Some(text), ..
        })
        | RuleWish::Rule(RuleParts {
            cidr: Some(text), ..
        }) => text,
        RuleWish::Rule(RuleParts {
            host: None,
            cidr: None,
            ..
        }) => "an object",
    };
    let short: String = text.chars().take(SHOWN_CHARACTERS_MAX).collect();
    format!("{short:?}")
}

fn parse_text(text: &str) -> Result<Entry, RuleError> {
    if let Some(name) = text.strip_prefix(presets::MARK) {
        return parse_preset(name);
    }
    if text.is_empty() {
        return Err(RuleError::Empty);
    }
    if let Some((_, rest)) = text.split_once("://") {
        let host = rest.split(['/', ':', '?', '#']).next().unwrap_or_default();
        let host = host.chars().take(SHOWN_CHARACTERS_MAX).collect();
        return Err(RuleError::Url { host });
    }
    let (target, ports) = match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => return Err(RuleError::Ipv6),
        Some((target, ports)) => (target, parse_ports(ports)?),
        None => (text, Ports::default()),
    };
    Ok(Entry::Rule(ParsedRule {
        id: None,
        target: parse_target(target)?,
        ports,
    }))
}

fn parse_preset(name: &str) -> Result<Entry, RuleError> {
    if name == presets::PUBLIC {
        return Ok(Entry::Public);
    }
    let known = presets::names().find(|known| *known == name);
    known.map(Entry::Preset).ok_or_else(|| RuleError::Preset {
        known: presets::names().collect::<Vec<_>>().join(", "),
    })
}

fn parse_ports(text: &str) -> Result<Ports, RuleError> {
    let parse = |text: &str| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|_| is_plain)
    };
    let ports: Option<Vec<u16>> = text.split(',').map(parse).collect();
    Ports::new(ports.ok_or(RuleError::Port)?).map_err(RuleError::Ports)
}

fn parse_parts(parts: &RuleParts) -> Result<ParsedRule, RuleError> {
    let target = match (&parts.host, &parts.cidr) {
        (Some(host), None) => EgressTarget::Host(parse_host(host)?),
        (None, Some(cidr)) => EgressTarget::Network(parse_network(cidr)?),
        (None, None) => return Err(RuleError::NoTarget),
        (Some(_), Some(_)) => return Err(RuleError::TwoTargets),
    };
    let ports = parts.ports.clone().map(Ports::new).transpose();
    Ok(ParsedRule {
        id: parts.id.clone(),
        target,
        ports: ports.map_err(RuleError::Ports)?.unwrap_or_default(),
    })
}

fn parse_target(text: &str) -> Result<EgressTarget, RuleError> {
    let looks_like_addresses = text.contains('/') || text.parse::<std::net::Ipv4Addr>().is_ok();
    if looks_like_addresses {
        return parse_network(text).map(EgressTarget::Network);
    }
    parse_host(text).map(EgressTarget::Host)
}

fn parse_network(text: &str) -> Result<Ipv4Network, RuleError> {
    if text.contains(':') {
        return Err(RuleError::Ipv6);
    }
    text.parse().map_err(RuleError::Network)
}

fn parse_host(text: &str) -> Result<HostPattern, RuleError> {
    if matches!(text, "*" | "**") {
        return Err(RuleError::Everything);
    }
    let (wildcard, name) = ["**.", "*."]
        .into_iter()
        .find_map(|wildcard| Some((wildcard, text.strip_prefix(wildcard)?)))
        .unwrap_or(("", text));
    let pattern: HostPattern = if name.is_ascii() {
        text.parse()
    } else {
        let ascii = idna::domain_to_ascii(name).map_err(|_| RuleError::Script)?;
        // A star of another script becomes a plain one, which its writer may not have seen.
        let name = HostName::parse(&ascii).map_err(RuleError::Host)?;
        format!("{wildcard}{name}").parse()
    }
    .map_err(RuleError::Host)?;
    match &pattern {
        HostPattern::OneLabel(name) | HostPattern::AnyDepth(name) if is_public_suffix(name) => {
            Err(RuleError::PublicSuffix {
                suffix: name.clone(),
            })
        }
        HostPattern::Exact(_) | HostPattern::OneLabel(_) | HostPattern::AnyDepth(_) => Ok(pattern),
    }
}

/// Whether anybody can have a name right below this one.
pub(crate) fn is_public_suffix(name: &HostName) -> bool {
    let name = name.as_str().as_bytes();
    psl::suffix(name).is_some_and(|suffix| suffix.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Result<(String, Vec<u16>), RuleError> {
        match parse(&RuleWish::text(text))? {
            Entry::Rule(rule) => {
                let target = match &rule.target {
                    EgressTarget::Host(pattern) => pattern.to_string(),
                    EgressTarget::Network(network) => network.to_string(),
                };
                Ok((target, rule.ports.as_slice().to_vec()))
            }
            other @ (Entry::Preset(_) | Entry::Public) => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_text_names_a_host_or_a_range_and_ports() {
        for (text, target, ports) in [
            ("PyPI.org.", "pypi.org", [80, 443].as_slice()),
            ("*.example.com", "*.example.com", &[80, 443]),
            ("**.example.com:8443", "**.example.com", &[8443]),
            ("example.com:443,22,22", "example.com", &[22, 443]),
            ("93.184.216.0/24", "93.184.216.0/24", &[80, 443]),
            ("93.184.216.34:22", "93.184.216.34/32", &[22]),
            ("bücher.example", "xn--bcher-kva.example", &[80, 443]),
            ("*.BÜCHER.example", "*.xn--bcher-kva.example", &[80, 443]),
            ("example\u{3002}com", "example.com", &[80, 443]),
        ] {
            assert_eq!(rule(text).unwrap(), (target.to_owned(), ports.to_vec()));
        }
    }

    #[test]
    fn wildcards_over_everybody_are_refused() {
        for text in ["*", "**"] {
            assert_eq!(rule(text), Err(RuleError::Everything));
        }
        for text in ["*.com", "**.org", "*.localhost"] {
            assert_eq!(rule(text), Err(RuleError::Host(InvalidHost::TooWide)));
        }
        for text in ["*.co.uk", "**.com.au", "*.github.io", "**.公司.cn"] {
            let refused = rule(text);
            assert!(
                matches!(refused, Err(RuleError::PublicSuffix { .. })),
                "{text}: {refused:?}"
            );
        }
        assert!(rule("*.example.co.uk").is_ok() && rule("co.uk").is_ok());
        assert!(rule("*.my-own.test").is_ok());
    }

    #[test]
    fn what_is_no_rule_is_told_apart() {
        let host = "pypi.org".to_owned();
        assert_eq!(
            rule("https://pypi.org/simple"),
            Err(RuleError::Url { host })
        );
        for (text, error) in [
            ("", RuleError::Empty),
            ("::1", RuleError::Ipv6),
            ("2001:db8::/32", RuleError::Ipv6),
            ("example.com:", RuleError::Port),
            ("example.com:http", RuleError::Port),
            ("example.com:65536", RuleError::Port),
            ("example.com:+80", RuleError::Port),
            ("10.0.0.1/8", RuleError::Network(InvalidNetwork::HostBits)),
            ("example.com/x", RuleError::Network(InvalidNetwork::Shape)),
            ("0x7f.1", RuleError::Host(InvalidHost::Number)),
            ("user@example.com", RuleError::Host(InvalidHost::Character)),
            ("exa\0mple.com", RuleError::Host(InvalidHost::Character)),
            ("a%00.example.com", RuleError::Host(InvalidHost::Character)),
            (
                "\u{ff0a}.example.com",
                RuleError::Host(InvalidHost::Character),
            ),
        ] {
            assert_eq!(rule(text), Err(error), "{text:?}");
        }
        assert!(matches!(
            rule("example.com:0"),
            Err(RuleError::Ports(InvalidPolicy::Ports))
        ));
        let unknown = parse(&RuleWish::text("preset:npm")).unwrap_err();
        assert!(
            unknown
                .to_string()
                .contains("package-registries, container-registries, git-hosts")
        );
        assert_eq!(parse(&RuleWish::text("preset:public")), Ok(Entry::Public));
    }

    #[test]
    fn an_object_has_one_target() {
        let parts = |host: Option<&str>, cidr: Option<&str>| {
            parse(&RuleWish::Rule(RuleParts {
                host: host.map(str::to_owned),
                cidr: cidr.map(str::to_owned),
                ..RuleParts::default()
            }))
        };
        assert!(parts(Some("a.test"), None).is_ok() && parts(None, Some("93.0.0.0/8")).is_ok());
        assert_eq!(parts(None, None), Err(RuleError::NoTarget));
        assert_eq!(
            parts(Some("a.test"), Some("93.0.0.0/8")),
            Err(RuleError::TwoTargets)
        );
        assert_eq!(
            parts(Some("93.184.216.34"), None),
            Err(RuleError::Host(InvalidHost::Number))
        );
        assert_eq!(parts(None, Some("::/0")), Err(RuleError::Ipv6));
    }
}
