//! Keys of steps: equal keys mean that the files after a step are the same.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::step::StepWork;

/// Says what is hashed; another way to do it needs another text.
const FORMAT: &str = "dayfly step 1";

/// What the files of a stage depend on, up to a step and with it: the base, and all work since.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepKey(String);

impl StepKey {
    /// The key of a base, before any step. The identity says which files it has: a digest, or the
    /// key of the last step of another stage.
    #[must_use]
    pub fn base(identity: &str) -> Self {
        Self::of(&[FORMAT, "base", identity])
    }

    /// The key after a step. `content` is the digest of the files that the step takes from
    /// elsewhere: from the build context, another stage or an image. A step that does nothing to
    /// files leaves the key as it is; what it changes is in the work of those after it.
    #[must_use]
    pub fn then(&self, work: &StepWork, content: Option<&str>) -> Self {
        if *work == StepWork::Nothing {
            return self.clone();
        }
        // Maps are sorted and fields have an order, so equal work is equal text. JSON can hold all
        // of it; if it could not, the other text would still be of this work alone.
        let work = serde_json::to_string(work).unwrap_or_else(|_| format!("{work:?}"));
        let said = match content {
            Some(_) => "with content",
            None => "without content",
        };
        let content = content.unwrap_or_default();
        Self::of(&[FORMAT, "step", &self.0, &work, said, content])
    }

    /// As 64 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Each part with its length, so that no two lists of parts are the same bytes.
    fn of(parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        Self(hex::encode(hash.finalize()))
    }
}

impl fmt::Display for StepKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
