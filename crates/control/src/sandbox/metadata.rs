//! Labels of the caller's own.

use std::collections::BTreeMap;

use dayfly_types::limits;

use crate::input::Invalid;

/// Refuses labels that are more, or longer, than the published schema allows.
pub(crate) fn check(metadata: &BTreeMap<String, String>) -> Result<(), Invalid> {
    if metadata.len() > limits::METADATA_ENTRIES_MAX {
        let rule = format!("must have at most {} entries", limits::METADATA_ENTRIES_MAX);
        return Err(Invalid::field("metadata", rule));
    }
    // Characters, as the published schema counts them.
    let fits = |text: &str, limit: usize| text.chars().count() <= limit;
    for (key, value) in metadata {
        if !fits(key, limits::METADATA_KEY_BYTES_MAX) {
            let limit = limits::METADATA_KEY_BYTES_MAX;
            let rule = format!("keys must have at most {limit} characters");
            return Err(Invalid::field("metadata", rule));
        }
        if !fits(value, limits::METADATA_VALUE_BYTES_MAX) {
            let limit = limits::METADATA_VALUE_BYTES_MAX;
            let rule = format!("values must have at most {limit} characters");
            return Err(Invalid::field("metadata", rule));
        }
    }
    Ok(())
}
