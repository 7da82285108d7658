//! What this node has promised, and the one place where promises are made.

use std::path::PathBuf;
use std::sync::Mutex;

use dayfly_core::admission::{self, Capacity, Committed, Demand, Refusal};

/// Reads what the host has. Behind a trait so that a simulated node can have any size.
pub trait HostResources: Send + Sync + std::fmt::Debug + 'static {
    fn memory_total_mib(&self) -> u64;
    /// Free space of the data directory.
    fn disk_available_mib(&self) -> u64;
}

/// The host itself.
#[derive(Debug)]
pub struct RealResources {
    pub data_directory: PathBuf,
}

impl HostResources for RealResources {
    fn memory_total_mib(&self) -> u64 {
        dayfly_host::memory::host_memory().map_or(0, |memory| memory.total_bytes >> 20)
    }

    fn disk_available_mib(&self) -> u64 {
        dayfly_host::files::disk_space(&self.data_directory)
            .map_or(0, |space| space.available_bytes >> 20)
    }
}

/// What is kept for the host, in MiB.
#[derive(Debug, Clone, Copy)]
pub struct Reserve {
    pub memory_mib: u64,
    pub disk_mib: u64,
}

/// The account of promises.
#[derive(Debug)]
pub struct Ledger {
    resources: Box<dyn HostResources>,
    reserve: Reserve,
    committed: Mutex<Committed>,
}

/// One promise. Dropping it takes the promise back.
#[derive(Debug)]
pub struct Promise {
    ledger: std::sync::Arc<Ledger>,
    demand: Demand,
}

impl Drop for Promise {
    fn drop(&mut self) {
        let mut committed = self.ledger.lock();
        *committed = admission::release(*committed, self.demand);
    }
}

impl Ledger {
    #[must_use]
    pub fn new(resources: Box<dyn HostResources>, reserve: Reserve) -> Self {
        Self {
            resources,
            reserve,
            committed: Mutex::new(Committed::default()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Committed> {
        // A panic while holding the lock cannot leave the two numbers half changed.
        self.committed
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn capacity(&self) -> Capacity {
        Capacity {
            memory_total_mib: self.resources.memory_total_mib(),
            memory_reserve_mib: self.reserve.memory_mib,
            disk_available_mib: self.resources.disk_available_mib(),
            disk_reserve_mib: self.reserve.disk_mib,
        }
    }

    /// Promises `demand`, or says what is short.
    ///
    /// # Errors
    /// [`Refusal`]; nothing was promised.
    pub fn promise(self: &std::sync::Arc<Self>, demand: Demand) -> Result<Promise, Refusal> {
        let capacity = self.capacity();
        let mut committed = self.lock();
        *committed = admission::admit(capacity, *committed, demand)?;
        Ok(Promise {
            ledger: std::sync::Arc::clone(self),
            demand,
        })
    }

    /// Books a sandbox that runs already, whether or not it would be admitted now.
    pub fn book(self: &std::sync::Arc<Self>, demand: Demand) -> Promise {
        let mut committed = self.lock();
        committed.memory_mib += demand.memory_mib;
        committed.disk_mib += demand.disk_mib;
        Promise {
            ledger: std::sync::Arc::clone(self),
            demand,
        }
    }

    /// What the host has and what is promised.
    #[must_use]
    pub fn view(&self) -> (Capacity, Committed) {
        (self.capacity(), *self.lock())
    }
}
