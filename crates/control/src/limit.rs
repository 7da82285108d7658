//! How much may go on at once. Beyond it a request is refused, not queued.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests that are being handled, streams aside. More than execs and transfers together, so
/// that these cannot shut out the rest.
pub const REQUESTS_MAX: usize = 4096;
/// Open connections of the public API.
pub const CONNECTIONS_MAX: usize = 8192;
const EXECS_MAX: usize = 2048;
const TRANSFERS_MAX: usize = 512;
/// Watches of files, which stay for as long as their reader does.
const FILE_WATCHES_MAX: usize = 512;
/// Visitors of services whose leave is being looked up.
const VISITORS_MAX: usize = 512;
/// Connections of visitors that speak something else than HTTP by now, of all sandboxes.
const TUNNELS_MAX: usize = 2048;
/// What all plain execs together keep of their output, in units of [`OUTPUT_UNIT_BYTES`].
const OUTPUT_UNITS_MAX: usize = 4096;
/// 256 MiB in all.
pub const OUTPUT_UNIT_BYTES: usize = 64 << 10;

const _: () = assert!(EXECS_MAX + TRANSFERS_MAX + FILE_WATCHES_MAX < REQUESTS_MAX);

/// A place that is given back when this is dropped.
#[derive(Debug)]
pub struct Place {
    _permit: OwnedSemaphorePermit,
}

/// Something of which there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server already handles as many {what} as it may")]
pub struct TooMany {
    pub what: &'static str,
}

/// The places of one control plane.
#[derive(Debug)]
pub struct Limits {
    requests: Arc<Semaphore>,
    execs: Arc<Semaphore>,
    transfers: Arc<Semaphore>,
    file_watches: Arc<Semaphore>,
    visitors: Arc<Semaphore>,
    tunnels: Arc<Semaphore>,
    output: Arc<Semaphore>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: Arc::new(Semaphore::new(REQUESTS_MAX)),
            execs: Arc::new(Semaphore::new(EXECS_MAX)),
            transfers: Arc::new(Semaphore::new(TRANSFERS_MAX)),
            file_watches: Arc::new(Semaphore::new(FILE_WATCHES_MAX)),
            visitors: Arc::new(Semaphore::new(VISITORS_MAX)),
            tunnels: Arc::new(Semaphore::new(TUNNELS_MAX)),
            output: Arc::new(Semaphore::new(OUTPUT_UNITS_MAX)),
        }
    }
}

impl Limits {
    /// Limits of another size, for tests.
    #[must_use]
    pub fn with(requests: usize, execs: usize) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(requests)),
            execs: Arc::new(Semaphore::new(execs)),
            ..Self::default()
        }
    }

    /// # Errors
    /// [`TooMany`].
    pub fn request(&self) -> Result<Place, TooMany> {
        take(&self.requests, "requests")
    }

    /// # Errors
    /// [`TooMany`].
    pub fn visitor(&self) -> Result<Place, TooMany> {
        take(&self.visitors, "visitors")
    }

    /// # Errors
    /// [`TooMany`].
    pub fn tunnel(&self) -> Result<Place, TooMany> {
        take(&self.tunnels, "upgraded connections")
    }

    /// # Errors
    /// [`TooMany`].
    pub fn exec(&self) -> Result<Place, TooMany> {
        take(&self.execs, "commands")
    }

    /// # Errors
    /// [`TooMany`].
    pub fn transfer(&self) -> Result<Place, TooMany> {
        take(&self.transfers, "file transfers")
    }

    /// # Errors
    /// [`TooMany`].
    pub fn watch(&self) -> Result<Place, TooMany> {
        take(&self.file_watches, "watches")
    }

    /// Room for one more unit of kept output.
    pub(crate) fn output_unit(&self) -> Option<Place> {
        take(&self.output, "outputs").ok()
    }
}

fn take(places: &Arc<Semaphore>, what: &'static str) -> Result<Place, TooMany> {
    let permit = Arc::clone(places)
        .try_acquire_owned()
        .map_err(|_| TooMany { what })?;
    Ok(Place { _permit: permit })
}
