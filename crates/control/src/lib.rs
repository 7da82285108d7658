//! The control plane: the public HTTP API, the database of what should exist, and the tasks that
//! bring node and database together.
//!
//! It must not know engines, guests or Linux: all it knows of a node is
//! [`dayfly_node_api::NodeApi`]. A slice for each part of the product ([`sandbox`], [`exec`],
//! [`files`], ...) has its handlers (`http`, `*_http`) and its use cases, one file each with its
//! error beside it; [`store`] remembers, [`reconcile`] repairs. Start reading at [`mod@run`] and
//! [`http::router`].
#![forbid(unsafe_code)]

pub mod admission;
pub mod audit;
pub mod build;
pub mod code;
mod conditions;
pub mod config;
pub mod control;
pub mod exec;
pub mod files;
pub mod gateway;
pub mod http;
pub mod input;
mod metrics;
pub mod network;
mod node_contact;
pub mod ports;
mod readiness;
pub mod reconcile;
pub mod run;
pub mod sandbox;
pub mod snapshot;
pub mod store;
mod store_check;
pub mod template;
pub mod tenancy;
pub mod time;
mod trace;
pub mod view;
pub mod volume;

pub use build::TemplateBuilder;
pub use config::{ControlConfig, ReconcileSettings};
pub use control::Control;
pub use gateway::{GatewaySettings, PreviewDomain};
pub use http::{
    Certificate, ConnectionLimits, InProcess, InvalidCertificate, MakeBuilder, MakeMcp, McpCaller,
    McpRefusal, McpService, ShownCertificate, TrustedProxies, openapi, router, router_with,
};
pub use run::{RunError, Server, run};
pub use tenancy::key::{KeyHash, PresentedKey};
pub use tenancy::sign_in::SignIn;
pub use tenancy::sign_in_settings::{InvalidSignIn, SignInConfig, SignInSettings};
