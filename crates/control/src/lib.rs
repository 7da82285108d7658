//! The control plane: the public HTTP API, the database of what should exist, and the tasks that
//! bring node and database together.
//!
//! It must not know engines, guests or Linux: all it knows of a node is
//! [`dayfly_node_api::NodeApi`]. Handlers in [`http`] translate, [`app`] decides, [`store`]
//! remembers, [`reconcile`] repairs. Start reading at [`mod@run`] and [`http::router`].
#![forbid(unsafe_code)]

pub mod app;
pub mod audit;
mod conditions;
pub mod config;
pub mod control;
pub mod gateway;
pub mod http;
pub mod key;
mod key_ends;
pub mod limit;
pub mod rates;
pub mod reconcile;
pub mod run;
pub mod scope;
mod share;
pub mod store;
mod store_check;
pub mod time;
mod turns;
pub mod view;

pub use config::{ControlConfig, ReconcileSettings};
pub use control::Control;
pub use gateway::{GatewaySettings, PreviewDomain};
pub use http::{ConnectionLimits, openapi, router};
pub use key::{KeyHash, PresentedKey};
pub use run::{RunError, Server, run};
