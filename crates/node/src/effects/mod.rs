//! Every effect of the node on the world outside, with a point before it and one after.
//!
//! A crash can come between any two effects, so each operation has to leave the world in a state
//! that the next start can take up, whatever the last effect was. Tests stop the node at each of
//! these points in turn. All effects go through here: the engine and the slots by wrappers of their
//! ports, the journal, captures and volumes inside their stores, the guest by [`Effects::around`]
//! at each call. A check of the sources (`xtask`) finds an effect that goes around.

mod captures;
mod engine;
mod gate;
mod slots;

use std::future::Future;
use std::sync::Arc;

pub(crate) use captures::Captures;
pub(crate) use engine::ObservedEngine;
pub(crate) use gate::ObservedGate;
pub use slots::ObservedSlots;

macro_rules! effects {
    ($($variant:ident = $word:literal,)*) => {
        /// What is done to the world.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Effect {
            $($variant,)*
        }

        impl Effect {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

effects! {
    JournalWrite = "journal.write",
    JournalRemove = "journal.remove",
    SlotAcquire = "slot.acquire",
    SlotLaunch = "slot.launch",
    SlotLimit = "slot.limit",
    SlotRelease = "slot.release",
    EngineBoot = "engine.boot",
    EnginePark = "engine.park",
    EngineRestore = "engine.restore",
    EnginePause = "engine.pause",
    EngineResume = "engine.resume",
    EngineCopyAhead = "engine.copy_ahead",
    EngineCapture = "engine.capture",
    EngineGiveBack = "engine.give_back",
    EnginePrepareSeal = "engine.prepare_seal",
    EngineSeal = "engine.seal",
    EngineGrow = "engine.grow",
    EngineAnnounce = "engine.announce",
    EngineKill = "engine.kill",
    GuestIdentify = "guest.identify",
    GuestThaw = "guest.thaw",
    GuestQuiesce = "guest.quiesce",
    GuestMount = "guest.mount",
    GuestUnmount = "guest.unmount",
    GuestGrow = "guest.grow",
    CaptureBegin = "capture.begin",
    CaptureTake = "capture.take",
    CaptureLink = "capture.link",
    CapturePublish = "capture.publish",
    CaptureAbandon = "capture.abandon",
    CaptureHide = "capture.hide",
    CaptureSweep = "capture.sweep",
    CaptureCollect = "capture.collect",
    CaptureFlatten = "capture.flatten",
    CaptureDrop = "capture.drop",
    TemplateBegin = "template.begin",
    TemplateTake = "template.take",
    TemplatePublish = "template.publish",
    TemplateRemove = "template.remove",
    TemplateSweep = "template.sweep",
    TemplateOrder = "template.order",
    VolumeEnsure = "volume.ensure",
    VolumeAttach = "volume.attach",
    VolumeDetach = "volume.detach",
    VolumeDelete = "volume.delete",
    EgressPermit = "egress.permit",
    EgressWithdraw = "egress.withdraw",
}

/// On which side of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    Before,
    After,
}

/// A moment at which a node may die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    pub effect: Effect,
    pub side: Side,
}

impl std::fmt::Display for Point {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let side = match self.side {
            Side::Before => "before",
            Side::After => "after",
        };
        write!(formatter, "{side} {}", self.effect.as_str())
    }
}

/// Told of every point. Ends the process, or the task, or nothing.
pub type Observer = Arc<dyn Fn(Point) + Send + Sync>;

/// Where the node passes before and after each effect.
#[derive(Clone, Default)]
pub struct Effects(Option<Observer>);

impl std::fmt::Debug for Effects {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Effects")
    }
}

impl Effects {
    #[must_use]
    pub fn observed_by(observer: Observer) -> Self {
        Self(Some(observer))
    }

    fn at(&self, effect: Effect, side: Side) {
        if let Some(observer) = &self.0 {
            observer(Point { effect, side });
        }
    }

    /// Runs an effect between its two points.
    pub(crate) fn around<T>(&self, effect: Effect, work: impl FnOnce() -> T) -> T {
        self.at(effect, Side::Before);
        let done = work();
        self.at(effect, Side::After);
        done
    }

    /// Runs an effect that waits between its two points.
    pub(crate) async fn around_async<T>(&self, effect: Effect, work: impl Future<Output = T>) -> T {
        self.at(effect, Side::Before);
        let done = work.await;
        self.at(effect, Side::After);
        done
    }
}
