//! What is wrong with a request, before anything was done.

/// A value that does not fit the documented shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("{field} {rule}")]
    Field { field: &'static str, rule: String },
    #[error("{what} is longer than {limit} bytes")]
    TooLarge { what: &'static str, limit: usize },
}

impl Invalid {
    pub(crate) fn field(field: &'static str, rule: impl Into<String>) -> Self {
        Self::Field {
            field,
            rule: rule.into(),
        }
    }
}

/// Refuses a NUL: neither a path nor an argument can carry one.
pub(crate) fn without_nul(field: &'static str, text: &str) -> Result<(), Invalid> {
    if text.contains('\0') {
        return Err(Invalid::field(field, "must not hold a NUL character"));
    }
    Ok(())
}
