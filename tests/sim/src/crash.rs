//! A node that dies at a chosen effect on the world.
//!
//! Its tasks run in a runtime of their own. At the chosen point no effect happens any more, in no
//! task, and then the runtime is dropped with everything in it: sockets close, and what was on its
//! way is lost. Engines, guests, slots and files are outside and stay, as after a SIGKILL.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use dayfly_node::{Effects, Node, Point};
use dayfly_node_api::{EnsureSandbox, NodeCalls as _, SandboxReport};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::World;

/// No order was given.
const UNARMED: i64 = -1;
/// More than any blocking task takes.
const BLOCKING_LIMIT: Duration = Duration::from_secs(10);

/// Watches the effects of one node.
#[derive(Debug, Default)]
pub struct Reaper {
    /// How many points are let through before the end.
    left: AtomicI64,
    is_dead: std::sync::atomic::AtomicBool,
    seen: Mutex<Option<Vec<Point>>>,
    died: Notify,
    at_death: OnceLock<AtDeath>,
}

/// What a test does at the moment of the end, before anything is dropped.
struct AtDeath(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for AtDeath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AtDeath")
    }
}

impl Reaper {
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            left: AtomicI64::new(UNARMED),
            ..Self::default()
        })
    }

    #[must_use]
    pub fn effects(self: &Arc<Self>) -> Effects {
        let reaper = Arc::clone(self);
        Effects::observed_by(Arc::new(move |point| reaper.pass(point)))
    }

    fn pass(&self, point: Point) {
        if !self.is_dead.load(Ordering::SeqCst) {
            if let Some(seen) = self.seen().as_mut() {
                seen.push(point);
            }
            let armed = self.left.load(Ordering::SeqCst) != UNARMED;
            if !armed || self.left.fetch_sub(1, Ordering::SeqCst) != 0 {
                return;
            }
            self.is_dead.store(true, Ordering::SeqCst);
            if let Some(AtDeath(look)) = self.at_death.get() {
                look();
            }
            self.died.notify_one();
        }
        // Ends this task without a word. Nothing behind this point happens.
        std::panic::resume_unwind(Box::new("the node died"));
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Option<Vec<Point>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the points are remembered.
    pub fn record(&self) {
        *self.seen() = Some(Vec::new());
    }

    /// Whether this point was passed since [`Reaper::record`].
    #[must_use]
    pub fn has_seen(&self, point: Point) -> bool {
        self.seen()
            .as_ref()
            .is_some_and(|seen| seen.contains(&point))
    }

    /// Has this done at the moment of the end. What is dropped afterwards tidies up, which a
    /// process that was killed does not.
    pub fn at_death(&self, look: impl Fn() + Send + Sync + 'static) {
        let _ = self.at_death.set(AtDeath(Box::new(look)));
    }

    #[must_use]
    pub fn recorded(&self) -> Vec<Point> {
        self.seen().take().unwrap_or_default()
    }

    /// Lets this many points through, and ends the node at the next.
    pub fn die_after(&self, points: usize) {
        let points = i64::try_from(points).unwrap_or(i64::MAX);
        self.left.store(points, Ordering::SeqCst);
    }

    pub async fn death(&self) {
        self.died.notified().await;
    }
}

/// A node in a runtime of its own.
#[derive(Debug)]
pub struct MortalNode {
    pub node: Arc<Node>,
    pub reaper: Arc<Reaper>,
    runtime: Option<Runtime>,
}

impl MortalNode {
    /// Starts a node on the world's journal.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start(world: &Arc<World>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let reaper = Reaper::new();
        let (here, effects) = (Arc::clone(world), reaper.effects());
        let started = runtime.spawn(async move { here.start_observed(effects).await });
        let node = started.await.context("the start panicked")??;
        Ok(Self {
            node,
            reaper,
            runtime: Some(runtime),
        })
    }

    /// Does something as the node's own task.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<tokio::task::JoinHandle<T>> {
        self.runtime.as_ref().map(|runtime| runtime.spawn(work))
    }

    /// Makes a sandbox. What serves it is a task of the node, and ends with it.
    ///
    /// # Errors
    /// When the node refuses.
    pub async fn ensure_sandbox(&self, request: EnsureSandbox) -> Result<SandboxReport> {
        let node = Arc::clone(&self.node);
        let work = self.spawn(async move { node.ensure_sandbox(request).await });
        Ok(work.context("no runtime")?.await??)
    }

    /// The end, as by SIGKILL. A blocking task that is in the middle of an effect finishes it, as
    /// if the kill had come a moment later; no effect begins.
    pub async fn kill(mut self) {
        self.reaper.is_dead.store(true, Ordering::SeqCst);
        if let Some(runtime) = self.runtime.take() {
            let end = move || runtime.shutdown_timeout(BLOCKING_LIMIT);
            // The runtime is gone either way.
            let _ = tokio::task::spawn_blocking(end).await;
        }
    }
}

impl Drop for MortalNode {
    fn drop(&mut self) {
        // A runtime may not be dropped where others run. What its tasks hold must be gone when the
        // test is over, temporary directories for one.
        if let Some(runtime) = self.runtime.take() {
            let end = move || runtime.shutdown_timeout(BLOCKING_LIMIT);
            let _ = std::thread::spawn(end).join();
        }
    }
}
