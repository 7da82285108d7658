//! Whether a sandbox does anything.
//!
//! Activity is a call that is open (an exec, a file), processor time of its engine above a floor,
//! an exec that still runs in the guest, or a busy lease that code in the guest took. Traffic that
//! merely arrives is none.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dayfly_guest_client::AgentClient;
use dayfly_host::process::cpu_time;
use dayfly_types::{Clock, Moment, limits};

/// How long a guest has to say whether it is busy.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

/// What is known of one sandbox's doings.
#[derive(Debug)]
pub(crate) struct Activity {
    clock: Arc<dyn Clock>,
    /// Execs and files that are open now.
    open_calls: AtomicUsize,
    /// When it last did something. Milliseconds of the node's clock.
    last: AtomicU64,
    processor: Mutex<Option<Sample>>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    pid: i32,
    at: Instant,
    used: Duration,
}

/// Counts as activity for as long as it lives.
#[derive(Debug)]
pub(crate) struct OpenCall(Arc<Activity>);

impl Drop for OpenCall {
    fn drop(&mut self) {
        // However short the call was, idleness counts from its end.
        self.0.note(self.0.clock.now());
        self.0.open_calls.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Activity {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            open_calls: AtomicUsize::new(0),
            last: AtomicU64::new(clock.now().0),
            clock,
            processor: Mutex::new(None),
        })
    }

    pub(crate) fn begin(self: &Arc<Self>) -> OpenCall {
        self.open_calls.fetch_add(1, Ordering::SeqCst);
        OpenCall(Arc::clone(self))
    }

    pub(crate) fn has_open_calls(&self) -> bool {
        self.open_calls.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn note(&self, now: Moment) {
        self.last.fetch_max(now.0, Ordering::SeqCst);
    }

    pub(crate) fn idle_for(&self, now: Moment) -> Duration {
        if self.has_open_calls() {
            return Duration::ZERO;
        }
        now.since(Moment(self.last.load(Ordering::SeqCst)))
    }

    /// Notes what can be seen from outside: open calls, and processor time since the last look.
    pub(crate) fn look(&self, now: Moment, pid: Option<i32>) {
        let is_open = self.has_open_calls();
        if is_open || pid.is_some_and(|pid| self.uses_processor(pid)) {
            self.note(now);
        }
    }

    fn uses_processor(&self, pid: i32) -> bool {
        let Ok(used) = cpu_time(pid) else {
            return false;
        };
        let sample = Sample {
            pid,
            at: Instant::now(),
            used,
        };
        let mut last = self
            .processor
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(before) = last.replace(sample).filter(|before| before.pid == pid) else {
            return false;
        };
        let wall = sample.at.duration_since(before.at).as_millis().max(1);
        let busy = sample.used.saturating_sub(before.used).as_millis();
        busy * 1000 / wall > u128::from(limits::ACTIVE_CPU_MILLIS)
    }
}

/// Asks the guest itself, which is the last question before it is taken for idle. A guest that
/// does not answer is not idle: something is wrong, and that is no reason to freeze it.
pub(crate) async fn guest_is_busy(agent: &AgentClient) -> bool {
    match tokio::time::timeout(ANSWER_LIMIT, agent.activity()).await {
        Ok(Ok(activity)) => activity.execs > 0 || activity.busy_ms > 0,
        Ok(Err(_)) | Err(_) => true,
    }
}
