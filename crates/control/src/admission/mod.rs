//! How much at once, how often, and who comes first: limits, rates, shares and turns.

pub mod limit;
pub mod rates;
pub(crate) mod share;
pub(crate) mod turns;
