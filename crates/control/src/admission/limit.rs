//! How much may go on at once. Beyond it a request is refused, not queued.
//!
//! What belongs to a project is shared out among projects; see [`crate::share`].

use std::sync::Arc;

use dayfly_types::{ProjectId, limits};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::admission::share::{Shared, SharedPlace};

/// Requests that are being handled, streams aside. More than execs and transfers together, so
/// that these cannot shut out the rest.
pub const REQUESTS_MAX: usize = 4096;
const EXECS_MAX: usize = 2048;
const TRANSFERS_MAX: usize = 512;
/// Watches of files, events and logs, which stay for as long as their reader does.
const WATCHES_MAX: usize = 512;
/// Commands in the background whose end is waited for, for the record.
const ENDINGS_MAX: usize = 1024;
/// Visitors of services whose leave is being looked up.
const VISITORS_MAX: usize = 512;
/// Connections of visitors that speak something else than HTTP by now, of all sandboxes.
const TUNNELS_MAX: usize = 2048;
/// What all plain execs together keep of their output, in units of [`OUTPUT_UNIT_BYTES`].
const OUTPUT_UNITS_MAX: usize = 4096;
/// 256 MiB in all.
pub const OUTPUT_UNIT_BYTES: usize = 64 << 10;

const _: () = assert!(EXECS_MAX + TRANSFERS_MAX + WATCHES_MAX < REQUESTS_MAX);

/// A place that is given back when this is dropped.
#[derive(Debug)]
pub struct Permit {
    _held: Held,
}

#[derive(Debug)]
#[expect(dead_code, reason = "given back when dropped")]
enum Held {
    OfAll(OwnedSemaphorePermit),
    OfProject(SharedPlace),
}

/// Something of which there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server already handles as many {what} as it may")]
pub struct TooMany {
    pub what: &'static str,
}

/// How many places there are of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    pub requests: usize,
    pub execs: usize,
    pub transfers: usize,
    pub watches: usize,
    pub endings: usize,
    pub visitors: usize,
    pub tunnels: usize,
    pub output_units: usize,
    pub mcp_sessions: usize,
    pub mcp_messages: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            requests: REQUESTS_MAX,
            execs: EXECS_MAX,
            transfers: TRANSFERS_MAX,
            watches: WATCHES_MAX,
            endings: ENDINGS_MAX,
            visitors: VISITORS_MAX,
            tunnels: TUNNELS_MAX,
            output_units: OUTPUT_UNITS_MAX,
            mcp_sessions: limits::MCP_SESSIONS_MAX,
            mcp_messages: limits::MCP_LONG_MESSAGES_MAX,
        }
    }
}

/// The places of one control plane.
#[derive(Debug)]
pub struct Limits {
    requests: Arc<Semaphore>,
    visitors: Arc<Semaphore>,
    project_requests: Shared,
    execs: Shared,
    transfers: Shared,
    watches: Shared,
    endings: Shared,
    tunnels: Shared,
    output: Shared,
    mcp_sessions: Shared,
    mcp_messages: Shared,
}

/// Where the output of a project's commands is kept.
#[derive(Debug, Clone)]
pub struct OutputRoom {
    places: Shared,
    project: ProjectId,
}

impl Default for Limits {
    fn default() -> Self {
        Self::of(Sizes::default())
    }
}

impl Limits {
    #[must_use]
    pub fn of(sizes: Sizes) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(sizes.requests)),
            visitors: Arc::new(Semaphore::new(sizes.visitors)),
            project_requests: Shared::new(sizes.requests),
            execs: Shared::new(sizes.execs),
            transfers: Shared::new(sizes.transfers),
            watches: Shared::new(sizes.watches),
            endings: Shared::new(sizes.endings),
            tunnels: Shared::new(sizes.tunnels),
            output: Shared::new(sizes.output_units),
            mcp_sessions: Shared::new(sizes.mcp_sessions),
            mcp_messages: Shared::new(sizes.mcp_messages),
        }
    }

    /// Limits of another size, for tests.
    #[must_use]
    pub fn with(requests: usize, execs: usize) -> Self {
        Self::of(Sizes {
            requests,
            execs,
            ..Sizes::default()
        })
    }

    /// A request of anybody, until it is known whose it is and after that.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn request(&self) -> Result<Permit, TooMany> {
        take(&self.requests, "requests")
    }

    /// A request of a project.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn request_of(&self, project: &ProjectId) -> Result<Permit, TooMany> {
        share(&self.project_requests, project, "requests of one project")
    }

    /// # Errors
    /// [`TooMany`].
    pub fn visitor(&self) -> Result<Permit, TooMany> {
        take(&self.visitors, "visitors")
    }

    /// # Errors
    /// [`TooMany`].
    pub fn tunnel(&self, project: &ProjectId) -> Result<Permit, TooMany> {
        let what = "upgraded connections to the sandboxes of one project";
        share(&self.tunnels, project, what)
    }

    /// A command that runs or is followed.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn exec(&self, project: &ProjectId) -> Result<Permit, TooMany> {
        share(&self.execs, project, "commands of one project")
    }

    /// # Errors
    /// [`TooMany`].
    pub fn transfer(&self, project: &ProjectId) -> Result<Permit, TooMany> {
        share(&self.transfers, project, "file transfers of one project")
    }

    /// # Errors
    /// [`TooMany`].
    pub fn watch(&self, project: &ProjectId) -> Result<Permit, TooMany> {
        share(&self.watches, project, "watches of one project")
    }

    /// # Errors
    /// [`TooMany`].
    pub fn ending(&self, project: &ProjectId) -> Result<Permit, TooMany> {
        share(&self.endings, project, "commands in the background")
    }

    /// A session of an MCP client, for as long as it lasts.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn mcp_session(&self, project: &ProjectId) -> Result<Permit, TooMany> {
        share(&self.mcp_sessions, project, "MCP sessions of one project")
    }

    /// A long message of an MCP client, for as long as it is worked on.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn mcp_message(&self, project: &ProjectId) -> Result<Permit, TooMany> {
        let what = "long MCP messages of one project";
        share(&self.mcp_messages, project, what)
    }

    /// Room for the output of a project's commands.
    #[must_use]
    pub fn output_of(&self, project: &ProjectId) -> OutputRoom {
        OutputRoom {
            places: self.output.clone(),
            project: project.clone(),
        }
    }
}

impl OutputRoom {
    /// Room for one more unit of kept output.
    pub(crate) fn unit(&self) -> Option<Permit> {
        let place = self.places.take(&self.project)?;
        Some(Permit {
            _held: Held::OfProject(place),
        })
    }
}

fn take(places: &Arc<Semaphore>, what: &'static str) -> Result<Permit, TooMany> {
    let permit = Arc::clone(places)
        .try_acquire_owned()
        .map_err(|_| TooMany { what })?;
    Ok(Permit {
        _held: Held::OfAll(permit),
    })
}

fn share(places: &Shared, project: &ProjectId, what: &'static str) -> Result<Permit, TooMany> {
    let place = places.take(project).ok_or(TooMany { what })?;
    Ok(Permit {
        _held: Held::OfProject(place),
    })
}
