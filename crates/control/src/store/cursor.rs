//! Where a list of sandboxes goes on.

use std::fmt;

use dayfly_types::SandboxId;

use super::SandboxRow;

/// A place in the list, which is in the order of making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub created_at_ms: i64,
    pub id: SandboxId,
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.created_at_ms, self.id)
    }
}

impl Cursor {
    /// Reads one that a list gave out.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (created_at_ms, id) = text.split_once('.')?;
        Some(Self {
            created_at_ms: created_at_ms.parse().ok()?,
            id: SandboxId::parse(id).ok()?,
        })
    }

    pub(crate) fn of(row: &SandboxRow) -> Self {
        Self {
            created_at_ms: row.created_at_ms,
            id: row.id.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is_one() {
        let id = SandboxId::parse("sb-local-00000000000000000000000001").unwrap();
        let cursor = Cursor {
            created_at_ms: 1_763_000_000_000,
            id,
        };
        assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        for text in ["", ".", "1.", "x.sb-local-1", "1 sb-local-1", "1.'; DROP"] {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
    }
}
