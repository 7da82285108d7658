//! What callers say in names and numbers, checked.

pub mod ids;
pub mod invalid;
pub(crate) mod quantity;

pub use invalid::Invalid;
