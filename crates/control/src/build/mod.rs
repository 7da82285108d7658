//! Builds of templates that the server runs, for callers that cannot run them themselves.
//!
//! What a build does is not here: [`TemplateBuilder`] does it, as a client of the API with the key of
//! whoever asked, so that a build has no right that its caller does not have. Here are the form with
//! its files ([`form`]), the builds that run and their events ([`running`], [`log`]), and what is
//! remembered of those that ended.

pub(crate) mod follow_http;
pub(crate) mod form;
pub(crate) mod http;
pub(crate) mod log;
mod multipart;
pub(crate) mod order;
pub(crate) mod port;
pub(crate) mod read;
pub(crate) mod running;
mod spool;
pub(crate) mod start;

pub use order::NewBuild;
pub use port::{
    BuildFailure, BuildKey, BuildOrder, BuildTold, BuiltVersion, TemplateBuilder, UploadedContext,
    UploadedFile,
};
