//! A sandbox whose guest is gone.

use dayfly_core::lifecycle::LifecycleEvent;
use dayfly_vmm::GuestEnd;

use super::owner::Owner;
use crate::console::console_of;

impl Owner {
    /// The engine is still there, and knows what the guest said last.
    pub(super) async fn guest_ended(&mut self, end: GuestEnd) {
        let console = match self.vm.as_mut() {
            Some(vm) => console_of(vm.as_mut()).await,
            None => String::new(),
        };
        let reason = match console.as_str() {
            "" => end.to_string(),
            console => format!("{end}; its console: {console}"),
        };
        self.fail(reason).await;
    }

    /// The guest is gone for good: give its resources back at once, keep the reason to show.
    pub(super) async fn fail(&mut self, reason: String) {
        self.vm = None;
        self.agent = None;
        self.room.is_over();
        tracing::warn!(sandbox_id = %self.record.id, reason, "failed");
        let failed = self.advance(LifecycleEvent::Fault(reason));
        if let Some(slot) = self.record.phase.slot() {
            self.release_slot(slot).await;
        }
        // Who could not be released may still hold its memory; the next start tries again.
        if self.record.phase.slot().is_none() {
            self.promise = None;
        }
        if let Err(error) = failed.and(self.write_record().await) {
            tracing::error!(sandbox_id = %self.record.id, %error, "cannot record a failure");
        }
        self.publish_now();
    }
}
