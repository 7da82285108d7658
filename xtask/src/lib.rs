//! Checks and figures of the sources themselves; nothing of the product. The checks are in `tests/`.
#![forbid(unsafe_code)]

pub mod figures;
pub mod source;
