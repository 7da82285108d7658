//! Slots and engines made ahead of time, so that a create waits for neither.
//!
//! A parked engine has started, mapped its template's memory and waits; nothing of a guest has
//! run in it. It is used once, for one sandbox. The pool fills itself in the background, while no
//! create is under way or most of the host's processors have none: a refill must not slow down what
//! it is meant to speed up, and creates that come steadily must not keep it away for ever.
//!
//! Each parked engine costs a slot and a process, so they wait for the templates of the start, and
//! for as many others as [`limits::POOL_TEMPLATES_MAX`] says: those that were used last.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dayfly_types::{TemplateName, TemplateSize, limits};
use dayfly_vmm::{
    BootError, BootSpec, Engine, ParkError, ParkedVm, Slot, SlotError, SlotIndex, SlotProvider, Vm,
};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::bring_up_line::BringUpLine;
use crate::templates::{ReadyTemplate, TemplateSource};

/// How many to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolTargets {
    /// Slots without an engine.
    pub slots: usize,
    /// Engines for each template that they are parked for.
    pub engines: usize,
}

/// How long after a create a refill waits.
const REFILL_QUIET: Duration = Duration::from_millis(700);
/// How long to wait after a refill failed.
const REFILL_PAUSE: Duration = Duration::from_secs(2);

/// Why no engine could be had.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    #[error("cannot make a slot")]
    Slot(#[source] SlotError),
    #[error("cannot start an engine")]
    Park(#[source] ParkError),
    #[error("cannot boot a machine")]
    Boot(#[source] BootError),
    #[error("the node is stopping")]
    Stopping,
}

/// An engine that waits in a slot.
#[derive(Debug)]
pub struct Parked {
    pub slot: Slot,
    pub vm: Box<dyn ParkedVm>,
}

/// A machine that was started from nothing. Its guest is coming up.
#[derive(Debug)]
pub struct Booting {
    pub slot: Slot,
    pub vm: Box<dyn Vm>,
}

/// One bake of one template, of whichever size.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BakeKey {
    template: TemplateName,
    version: String,
}

impl BakeKey {
    fn of(template: &ReadyTemplate) -> Self {
        Self {
            template: template.name.clone(),
            version: template.version.clone(),
        }
    }
}

/// A template in one size, whichever bake of it.
type UsedSize = (TemplateName, TemplateSize);

fn used_size(template: &ReadyTemplate) -> UsedSize {
    (template.name.clone(), template.size())
}

#[derive(Debug, Default)]
struct Shelf {
    slots: VecDeque<Slot>,
    engines: HashMap<BakeKey, VecDeque<Parked>>,
    /// Used since the start and not parked for ahead, the most recent last.
    used: VecDeque<UsedSize>,
    /// Taken from the shelf or made, and not yet an engine.
    in_the_making: BTreeSet<SlotIndex>,
    /// Set once the node stops: nothing may be put on the shelf any more.
    is_closed: bool,
}

/// The pool.
#[derive(Debug)]
pub struct Pool {
    engine: Arc<dyn Engine>,
    slots: Arc<dyn SlotProvider>,
    templates: Arc<dyn TemplateSource>,
    targets: PoolTargets,
    bring_ups: Arc<BringUpLine>,
    shelf: Mutex<Shelf>,
    wanted: Notify,
    creates_under_way: AtomicUsize,
}

/// Says that a create is under way for as long as it lives.
#[derive(Debug)]
pub struct CreateUnderWay(Arc<Pool>);

impl CreateUnderWay {
    /// Ends a little later: what follows a create is its first exec, and a refill beside it would
    /// slow it down on a small host.
    pub fn linger(self) {
        tokio::spawn(async move {
            tokio::time::sleep(REFILL_QUIET).await;
            drop(self);
        });
    }
}

impl Drop for CreateUnderWay {
    fn drop(&mut self) {
        self.0.creates_under_way.fetch_sub(1, Ordering::Relaxed);
        self.0.wanted.notify_one();
    }
}

impl Pool {
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        slots: Arc<dyn SlotProvider>,
        templates: Arc<dyn TemplateSource>,
        targets: PoolTargets,
        bring_ups: Arc<BringUpLine>,
    ) -> Arc<Self> {
        Arc::new(Self {
            engine,
            slots,
            templates,
            targets,
            bring_ups,
            shelf: Mutex::new(Shelf::default()),
            wanted: Notify::new(),
            creates_under_way: AtomicUsize::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds refills back until the answer is dropped.
    pub fn create_begins(self: &Arc<Self>) -> CreateUnderWay {
        self.creates_under_way.fetch_add(1, Ordering::Relaxed);
        CreateUnderWay(Arc::clone(self))
    }

    /// How many engines are parked for a template, in all sizes.
    #[must_use]
    pub fn count(&self, template: &TemplateName) -> usize {
        let shelf = self.lock();
        let parked = shelf.engines.iter();
        let parked = parked.filter(|(key, _)| key.template == *template);
        parked.map(|(_, queue)| queue.len()).sum()
    }

    /// How many there should be.
    #[must_use]
    pub fn target_of(&self, template: &TemplateName) -> usize {
        let wanted = self.wanted_bakes();
        let own = wanted.iter().filter(|one| one.name == *template);
        own.count() * self.targets.engines
    }

    /// The bakes that engines are parked for.
    fn wanted_bakes(&self) -> Vec<Arc<ReadyTemplate>> {
        let used = self.lock().used.clone();
        let mut ready = self.templates.all_ready();
        ready.retain(|one| self.templates.is_parked_ahead(one) || used.contains(&used_size(one)));
        ready
    }

    /// Notes the use of a template; the one that was used least recently makes room for it.
    fn note_use(&self, template: &ReadyTemplate) {
        if self.templates.is_parked_ahead(template) {
            return;
        }
        let size = used_size(template);
        let mut shelf = self.lock();
        shelf.used.retain(|one| *one != size);
        shelf.used.push_back(size);
        if shelf.used.len() > limits::POOL_TEMPLATES_MAX {
            shelf.used.pop_front();
        }
    }

    #[must_use]
    pub fn slot_count(&self) -> usize {
        self.lock().slots.len()
    }

    /// Every slot that the pool answers for.
    #[must_use]
    pub fn held_slots(&self) -> Vec<SlotIndex> {
        let shelf = self.lock();
        let parked = shelf
            .engines
            .values()
            .flatten()
            .map(|parked| parked.slot.index);
        let waiting = shelf.slots.iter().map(|slot| slot.index);
        parked
            .chain(waiting)
            .chain(shelf.in_the_making.iter().copied())
            .collect()
    }

    #[must_use]
    pub fn targets(&self) -> PoolTargets {
        self.targets
    }

    /// An engine for the template: a parked one, or else one made now.
    ///
    /// # Errors
    /// [`TakeError`]; nothing is left then.
    ///
    /// # Cancel safety
    /// Dropping the future gives back whatever it had made.
    pub async fn take(
        self: &Arc<Self>,
        template: &Arc<ReadyTemplate>,
    ) -> Result<Parked, TakeError> {
        self.note_use(template);
        match self.take_parked(template) {
            Some(parked) => Ok(parked),
            None => self.make(template).await,
        }
    }

    /// An engine made now, for when a parked one turned out to be dead.
    ///
    /// # Errors
    /// [`TakeError`]; nothing is left then.
    ///
    /// # Cancel safety
    /// Dropping the future gives back whatever it had made.
    pub async fn make(
        self: &Arc<Self>,
        template: &Arc<ReadyTemplate>,
    ) -> Result<Parked, TakeError> {
        let (give, receive) = oneshot::channel();
        let pool = Arc::clone(self);
        let template = Arc::clone(template);
        // The work runs by itself, so that a caller who leaves in the middle leaks nothing: when
        // nobody receives the engine, its slot is released here.
        tokio::spawn(async move {
            let made = pool.make_here(&template).await;
            if let Err(Ok(parked)) = give.send(made) {
                pool.discard(parked.slot).await;
            }
        });
        receive.await.unwrap_or(Err(TakeError::Stopping))
    }

    /// A machine that boots in a slot of the pool.
    ///
    /// # Errors
    /// [`TakeError`]; nothing is left then.
    ///
    /// # Cancel safety
    /// As [`Pool::make`].
    pub async fn boot(self: &Arc<Self>, spec: BootSpec) -> Result<Booting, TakeError> {
        let (give, receive) = oneshot::channel();
        let pool = Arc::clone(self);
        tokio::spawn(async move {
            let made = pool.boot_here(&spec).await;
            if let Err(Ok(booting)) = give.send(made) {
                pool.discard(booting.slot).await;
            }
        });
        receive.await.unwrap_or(Err(TakeError::Stopping))
    }

    fn take_parked(&self, template: &ReadyTemplate) -> Option<Parked> {
        let mut shelf = self.lock();
        let queue = shelf.engines.get_mut(&BakeKey::of(template))?;
        queue.pop_front()
    }

    /// A slot of the shelf, or one made now. It is in the making until that is taken back.
    async fn take_slot(&self) -> Result<Slot, TakeError> {
        let waiting = self.lock().slots.pop_front();
        let slot = match waiting {
            Some(slot) => slot,
            None => self.slots.acquire().await.map_err(TakeError::Slot)?,
        };
        self.lock().in_the_making.insert(slot.index);
        Ok(slot)
    }

    async fn boot_here(&self, spec: &BootSpec) -> Result<Booting, TakeError> {
        let slot = self.take_slot().await?;
        let booted = self.engine.boot(&slot, spec).await;
        self.lock().in_the_making.remove(&slot.index);
        match booted {
            Ok(vm) => Ok(Booting { slot, vm }),
            Err(error) => {
                self.discard(slot).await;
                Err(TakeError::Boot(error))
            }
        }
    }

    async fn make_here(&self, template: &ReadyTemplate) -> Result<Parked, TakeError> {
        let slot = self.take_slot().await?;
        let parked = self.engine.park(&slot, &template.restore).await;
        self.lock().in_the_making.remove(&slot.index);
        match parked {
            Ok(vm) => Ok(Parked { slot, vm }),
            Err(error) => {
                self.discard(slot).await;
                Err(TakeError::Park(error))
            }
        }
    }

    async fn discard(&self, slot: Slot) {
        if let Err(error) = self.slots.release(slot.index).await {
            // The reconciler finds the slot again, because no record names it.
            tracing::warn!(
                slot = slot.index.0,
                ?error,
                "cannot release a slot of the pool"
            );
        }
    }

    /// Keeps the pool at its targets until `stop`, then gives everything back.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.templates.changes();
        while !stop.is_cancelled() {
            let pause = match self.refill_one().await {
                Ok(true) => continue,
                Ok(false) => None,
                Err(error) => {
                    tracing::warn!(error = %crate::error_chain(&error), "cannot refill the pool");
                    Some(REFILL_PAUSE)
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.wanted.notified(), if pause.is_none() => {}
                _ = changes.changed(), if pause.is_none() => {}
                () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            }
        }
        self.empty().await;
    }

    /// Makes one thing that is missing. `Ok(false)`: nothing is, or a create needs the host.
    async fn refill_one(&self) -> Result<bool, TakeError> {
        let has_creates = self.creates_under_way.load(Ordering::Relaxed) > 0;
        if has_creates && !self.bring_ups.has_spare() {
            return Ok(false);
        }
        if self.drop_outdated().await {
            return Ok(true);
        }
        for template in self.wanted_bakes() {
            let key = BakeKey::of(&template);
            let count = self.lock().engines.get(&key).map_or(0, VecDeque::len);
            if count < self.targets.engines {
                let parked = self.make_here(&template).await?;
                self.put(key, parked).await;
                return Ok(true);
            }
        }
        if self.slot_count() < self.targets.slots {
            let slot = self.slots.acquire().await.map_err(TakeError::Slot)?;
            if let Some(refused) = self.shelve_slot(slot) {
                self.discard(refused).await;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Gives the slot back when the pool has closed.
    fn shelve_slot(&self, slot: Slot) -> Option<Slot> {
        let mut shelf = self.lock();
        if shelf.is_closed {
            return Some(slot);
        }
        shelf.slots.push_back(slot);
        None
    }

    async fn put(&self, bake: BakeKey, parked: Parked) {
        let refused = {
            let mut shelf = self.lock();
            if shelf.is_closed {
                Some(parked)
            } else {
                shelf.engines.entry(bake).or_default().push_back(parked);
                None
            }
        };
        if let Some(parked) = refused {
            self.discard(parked.slot).await;
        }
    }

    /// Ends one parked engine whose template was baked anew, or is not among those that were used
    /// last any more. True if there was one.
    async fn drop_outdated(&self) -> bool {
        let wanted = self.wanted_bakes();
        let wanted: Vec<BakeKey> = wanted.iter().map(|one| BakeKey::of(one)).collect();
        let outdated = {
            let mut shelf = self.lock();
            shelf.engines.retain(|_, queue| !queue.is_empty());
            let mut parked = shelf.engines.iter_mut();
            parked.find_map(|(key, queue)| {
                let is_outdated = !wanted.contains(key);
                is_outdated.then(|| queue.pop_front()).flatten()
            })
        };
        match outdated {
            Some(parked) => {
                self.discard(parked.slot).await;
                true
            }
            None => false,
        }
    }

    async fn empty(&self) {
        let (slots, engines) = {
            let mut shelf = self.lock();
            shelf.is_closed = true;
            (
                std::mem::take(&mut shelf.slots),
                std::mem::take(&mut shelf.engines),
            )
        };
        for slot in slots {
            self.discard(slot).await;
        }
        for parked in engines.into_values().flatten() {
            self.discard(parked.slot).await;
        }
    }
}
