//! `dayflyd bench`: the product beside the bare engine, or beside what the host can do at best,
//! interleaved in one run.

pub(crate) mod bare;
pub(crate) mod create;
pub(crate) mod daemon;
pub(crate) mod engine_memory;
pub(crate) mod environment;
pub(crate) mod exec;
pub(crate) mod figures;
pub(crate) mod fork;
pub(crate) mod fork_report;
pub(crate) mod goal;
pub(crate) mod mark;
pub(crate) mod product;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod wake;
pub(crate) mod write_speed;
