//! Commands: started, followed, read again, and what is told of them.

pub(crate) mod audit;
pub(crate) mod background;
pub mod collect;
pub mod follow;
pub(crate) mod hint;
pub(crate) mod http;
pub(crate) mod logs_http;
pub mod output;
pub(crate) mod process;
pub(crate) mod process_parameter;
pub(crate) mod processes_http;
pub(crate) mod run_http;
pub(crate) mod shape;
pub(crate) mod socket_http;
pub mod spec;
pub(crate) mod stream_http;
