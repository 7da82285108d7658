//! `dayflyd bench`: the product beside the bare engine, interleaved in one run.

pub(crate) mod bare;
pub(crate) mod create;
pub(crate) mod daemon;
pub(crate) mod figures;
