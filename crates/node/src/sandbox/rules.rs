//! How long a sandbox lives, and what happens when it does nothing.

use std::time::{Duration, SystemTime};

use dayfly_core::expiry;
use dayfly_node_api::{LifecycleChange, LifecycleReport, NodeError};
use dayfly_types::{EndReason, IdleAction, SandboxState, SleepReason};

use super::activity::guest_is_busy;
use super::handle::wrong_state;
use super::owner::Owner;
use super::sleep::SleepWhen;

/// How long to wait before an idle sandbox that could not be put to sleep is tried again.
const SLEEP_RETRY: Duration = Duration::from_secs(30);

impl Owner {
    /// How long it may do nothing, while that counts.
    pub(super) fn idle_limit(&self) -> Option<Duration> {
        let rules = self.record.lifecycle;
        // A guest that stands still for want of room is not idle.
        let runs = self.record.state() == SandboxState::Running && !self.room.is_waiting();
        let counts = (runs || self.sleeps_until_its_end()) && !rules.persistent;
        rules
            .idle_seconds
            .filter(|_| counts)
            .map(Duration::from_secs)
    }

    /// One that was put to sleep for others ends when it would have, had it gone on doing nothing.
    /// Not over a command, of which nobody knows what it would have done.
    fn sleeps_until_its_end(&self) -> bool {
        self.record.state() == SandboxState::Hibernated
            && self.record.sleep_reason == Some(SleepReason::Pressure)
            && self.record.lifecycle.on_timeout == IdleAction::Delete
            && !self.record.is_restless
    }

    /// Acts on idleness. `true`: the sandbox ends.
    pub(super) async fn idle_timeout_deletes(&mut self) -> bool {
        if self.sleeps_until_its_end() {
            self.idled_out = true;
            return true;
        }
        let pid = self.vm.as_ref().map(|vm| vm.process().pid);
        // A guest that cannot be asked is not known to be idle.
        let is_busy = self.activity.worked_on_the_whole(pid)
            || match self.agent.clone() {
                Some(agent) => guest_is_busy(&agent).await,
                None => true,
            };
        if is_busy {
            self.activity.note(self.parts.clock.now());
            return false;
        }
        tracing::info!(sandbox_id = %self.record.id, "idle");
        match self.record.lifecycle.on_timeout {
            IdleAction::Delete => {
                self.idled_out = true;
                true
            }
            IdleAction::Hibernate => {
                if let Err(error) = self.hibernate_if(SleepWhen::WhileIdle).await {
                    tracing::warn!(sandbox_id = %self.record.id, %error, "cannot put it to sleep");
                    let later = self.parts.clock.now().plus(SLEEP_RETRY);
                    self.activity.note(later);
                }
                false
            }
        }
    }

    /// Why the sandbox goes, when nobody asked for it.
    pub(super) fn ended(&self) -> Option<EndReason> {
        let state = self.record.state();
        let is_going = matches!(state, SandboxState::Deleting | SandboxState::Deleted);
        if !is_going || self.doomed.is_cancelled() || !self.delete_waiters.is_empty() {
            return None;
        }
        let now = self.parts.clock.now();
        let is_expired = self.record.expires.is_some_and(|deadline| deadline <= now);
        if self.idled_out {
            return Some(EndReason::Idle);
        }
        is_expired.then_some(EndReason::Ttl)
    }

    /// Looks again at a deadline that was found by the wall clock, which may have been put right
    /// since. `true`: there is time left.
    pub(super) fn has_time_left(&mut self) -> bool {
        let Some(wall_ms) = self
            .record
            .expires_wall_ms
            .filter(|_| self.record.expires_bridged)
        else {
            return false;
        };
        let clock = &self.parts.clock;
        let now = clock.wall().duration_since(SystemTime::UNIX_EPOCH);
        let left = Duration::from_millis(wall_ms).saturating_sub(now.unwrap_or_default());
        self.record.expires = Some(clock.now().plus(left));
        !left.is_zero()
    }

    pub(super) async fn set_lifecycle(
        &mut self,
        change: LifecycleChange,
    ) -> Result<LifecycleReport, NodeError> {
        if matches!(
            self.record.state(),
            SandboxState::Deleting | SandboxState::Deleted
        ) {
            return Err(wrong_state(self.record.state()));
        }
        let rules = &mut self.record.lifecycle;
        rules.persistent = change.persistent.unwrap_or(rules.persistent);
        rules.idle_seconds = change.idle_seconds.unwrap_or(rules.idle_seconds);
        rules.on_timeout = change.on_timeout.unwrap_or(rules.on_timeout);
        if let Some(ttl_seconds) = change.ttl_seconds {
            rules.ttl_seconds = ttl_seconds;
            let clock = &self.parts.clock;
            self.record.expires = expiry::deadline(clock.now(), ttl_seconds);
            self.record.expires_wall_ms = expiry::wall_deadline_ms(clock.wall(), ttl_seconds);
            self.record.expires_bridged = false;
        }
        self.record.generation = self.record.generation.next();
        self.write_record().await?;
        self.publish_now();
        let now = self.parts.clock.now();
        Ok(LifecycleReport {
            lifecycle: self.record.lifecycle,
            expires_in_seconds: self
                .record
                .expires
                .map(|deadline| expiry::seconds_left(now, deadline)),
            idle_for_seconds: self.activity.idle_for(now).as_secs(),
        })
    }
}
