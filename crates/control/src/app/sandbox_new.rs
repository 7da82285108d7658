//! A wished-for sandbox, checked.

use std::collections::BTreeMap;

use dayfly_api::CreateSandbox;
use dayfly_types::{TemplateName, limits};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Invalid;

const TEMPLATE_DEFAULT: &str = "base";

/// What a caller wants. Every value is within its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewSandbox {
    pub template: TemplateName,
    pub metadata: BTreeMap<String, String>,
    pub ttl_seconds: Option<u64>,
    pub persistent: bool,
}

impl NewSandbox {
    /// The same for two requests exactly when they ask for the same.
    #[must_use]
    pub fn request_hash(&self) -> String {
        // Maps here are sorted, so equal wishes have equal texts.
        hex::encode(Sha256::digest(serde_json::to_vec(self).unwrap_or_default()))
    }
}

impl TryFrom<CreateSandbox> for NewSandbox {
    type Error = Invalid;

    fn try_from(body: CreateSandbox) -> Result<Self, Invalid> {
        if body.from_snapshot.is_some() {
            return Err(Invalid::NotBuilt {
                what: "from_snapshot",
            });
        }
        if body.volumes.is_some_and(|volumes| !volumes.is_empty()) {
            return Err(Invalid::NotBuilt { what: "volumes" });
        }
        let template = body.template.as_deref().unwrap_or(TEMPLATE_DEFAULT);
        let template = TemplateName::parse(template)
            .map_err(|error| Invalid::field("template", format!("is not a name: {error}")))?;
        let persistent = body.persistent.unwrap_or(false);
        let metadata = body.metadata.unwrap_or_default();
        check_metadata(&metadata)?;
        let ttl_seconds = ttl(body.ttl_seconds, persistent)?;
        Ok(Self {
            template,
            metadata,
            ttl_seconds,
            persistent,
        })
    }
}

fn ttl(given: Option<u64>, persistent: bool) -> Result<Option<u64>, Invalid> {
    match given {
        Some(seconds) if (1..=limits::TTL_SECONDS_MAX).contains(&seconds) => Ok(Some(seconds)),
        Some(_) => {
            let rule = format!("must be between 1 and {}", limits::TTL_SECONDS_MAX);
            Err(Invalid::field("ttl_seconds", rule))
        }
        None if persistent => Ok(None),
        None => Ok(Some(limits::TTL_SECONDS_DEFAULT)),
    }
}

fn check_metadata(metadata: &BTreeMap<String, String>) -> Result<(), Invalid> {
    if metadata.len() > limits::METADATA_ENTRIES_MAX {
        let rule = format!("must have at most {} entries", limits::METADATA_ENTRIES_MAX);
        return Err(Invalid::field("metadata", rule));
    }
    // Characters, as the published schema counts them.
    let fits = |text: &str, limit: usize| text.chars().count() <= limit;
    for (key, value) in metadata {
        if !fits(key, limits::METADATA_KEY_BYTES_MAX) {
            let rule = format!(
                "keys must have at most {} characters",
                limits::METADATA_KEY_BYTES_MAX
            );
            return Err(Invalid::field("metadata", rule));
        }
        if !fits(value, limits::METADATA_VALUE_BYTES_MAX) {
            let limit = limits::METADATA_VALUE_BYTES_MAX;
            return Err(Invalid::field(
                "metadata",
                format!("values must have at most {limit} characters"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<NewSandbox, Invalid> {
        serde_json::from_str::<CreateSandbox>(json)
            .unwrap()
            .try_into()
    }

    #[test]
    fn null_is_absent_and_unknown_fields_are_ignored() {
        let nulls = r#"{"template":null,"ttl_seconds":null,"persistent":null,"metadata":null,
            "from_snapshot":null,"volumes":null,"nonsense":[1]}"#;
        assert_eq!(parse(nulls), parse("{}"));
        assert_eq!(
            parse("{}").unwrap().ttl_seconds,
            Some(limits::TTL_SECONDS_DEFAULT)
        );
    }

    #[test]
    fn a_persistent_sandbox_has_a_deadline_only_when_it_is_given() {
        assert_eq!(parse(r#"{"persistent":true}"#).unwrap().ttl_seconds, None);
        let given = parse(r#"{"persistent":true,"ttl_seconds":9}"#).unwrap();
        assert_eq!(given.ttl_seconds, Some(9));
        assert_eq!(
            parse(r#"{"ttl_seconds":9.0}"#).unwrap().ttl_seconds,
            Some(9)
        );
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for json in [
            r#"{"ttl_seconds":0}"#,
            r#"{"ttl_seconds":31536001}"#,
            r#"{"template":"A"}"#,
        ] {
            assert!(matches!(parse(json), Err(Invalid::Field { .. })), "{json}");
        }
        assert!(matches!(
            parse(r#"{"from_snapshot":"x"}"#),
            Err(Invalid::NotBuilt { .. })
        ));
        assert!(matches!(
            parse(r#"{"volumes":[{}]}"#),
            Err(Invalid::NotBuilt { .. })
        ));
    }

    #[test]
    fn equal_wishes_have_equal_hashes() {
        let one = parse(r#"{"metadata":{"a":"1","b":"2"}}"#).unwrap();
        let two = parse(r#"{"metadata":{"b":"2","a":"1"},"template":"base"}"#).unwrap();
        assert_eq!(one.request_hash(), two.request_hash());
        assert_ne!(one.request_hash(), parse("{}").unwrap().request_hash());
    }
}
