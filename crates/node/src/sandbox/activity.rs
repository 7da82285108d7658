//! Whether a sandbox does anything.
//!
//! Activity is a call that is open (an exec, a file, a wait for a port), processor time of its
//! engine above a floor, an exec that still runs in the guest, or a busy lease that code in the
//! guest took. Traffic that merely arrives is none.
//!
//! A node that needs memory for others looks closer (see [`Quiet`]): a command that somebody follows
//! and that only waits does not keep its sandbox awake then, and a visit from outside does.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// Execs, files and waits that are open now.
    open_calls: AtomicUsize,
    /// Of those, the ones that do more than read what a command says.
    full_calls: AtomicUsize,
    /// Connections from outside that lead into it now.
    visits: AtomicUsize,
    /// When it last did something. Milliseconds of the node's clock.
    last: AtomicU64,
    processor: Mutex<Processor>,
    quiet: Mutex<Quiet>,
}

/// Since when an engine did next to nothing, as far as that was looked at.
#[derive(Debug)]
struct Quiet {
    since: Moment,
    looked: Option<Sample>,
}

/// What the engine's processor time was.
#[derive(Debug, Default)]
struct Processor {
    /// At the last looks, the oldest first.
    recent: VecDeque<Sample>,
    /// At the first look after something was noted.
    since_note: Option<Sample>,
}

/// How many looks a burst is averaged over.
const SAMPLES: usize = 3;

#[derive(Debug, Clone, Copy)]
struct Sample {
    pid: i32,
    at: Instant,
    used: Duration,
}

/// The engine before something was done in its guest that is no activity of it.
#[derive(Debug)]
pub(crate) struct Upkeep(Sample);

/// Counts as activity for as long as it lives.
#[derive(Debug)]
pub(crate) struct OpenCall {
    activity: Arc<Activity>,
    follows: bool,
}

impl OpenCall {
    /// From here on it only reads what a command says.
    pub(crate) fn follows(mut self) -> Self {
        if !self.follows {
            self.activity.note_use(self.activity.clock.now());
            self.activity.full_calls.fetch_sub(1, Ordering::SeqCst);
            self.follows = true;
        }
        self
    }

    /// One more of the same sandbox, which counts in full.
    pub(crate) fn beside(&self) -> Self {
        self.activity.begin()
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        // However short the call was, idleness counts from its end.
        self.activity.note_use(self.activity.clock.now());
        if !self.follows {
            self.activity.full_calls.fetch_sub(1, Ordering::SeqCst);
        }
        self.activity.open_calls.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A visit from outside, for as long as it lives. It is no activity of the sandbox, which sleeps for
/// its own idleness all the same, but it does not sleep for others meanwhile.
#[derive(Debug)]
pub(crate) struct Visit(Arc<Activity>);

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.note_rest(self.0.clock.now());
        self.0.visits.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Activity {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            open_calls: AtomicUsize::new(0),
            full_calls: AtomicUsize::new(0),
            visits: AtomicUsize::new(0),
            last: AtomicU64::new(clock.now().0),
            quiet: Mutex::new(Quiet {
                since: clock.now(),
                looked: None,
            }),
            clock,
            processor: Mutex::default(),
        })
    }

    pub(crate) fn visit(self: &Arc<Self>) -> Visit {
        self.visits.fetch_add(1, Ordering::SeqCst);
        Visit(Arc::clone(self))
    }

    /// Whether somebody uses it who would notice its sleep: whoever only follows a command does not.
    pub(crate) fn is_used(&self) -> bool {
        self.full_calls.load(Ordering::SeqCst) > 0 || self.visits.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn has_followers(&self) -> bool {
        let full = self.full_calls.load(Ordering::SeqCst);
        self.open_calls.load(Ordering::SeqCst) > full
    }

    /// Looks whether the engine did next to nothing since the last look, for [`Self::quiet_since`].
    pub(crate) fn look_for_quiet(&self, now: Moment, pid: i32, used: Option<Duration>) {
        let at = Instant::now();
        let sample = used.map(|used| Sample { pid, at, used });
        let mut quiet = self.quiet();
        let rested = match (sample, quiet.looked) {
            // Over a long time a short burst would not show.
            (Some(sample), Some(before)) if sample.is_soon_after(before) => {
                sample.rate_since(before) <= limits::ACTIVE_CPU_MILLIS
            }
            // What was not seen is not known to have been quiet.
            _ => false,
        };
        quiet.looked = sample;
        if !rested || self.is_used() {
            quiet.since = quiet.since.max(now);
        }
    }

    /// Whether nobody has looked for so long that it may have begun to work since.
    pub(crate) fn is_out_of_sight(&self) -> bool {
        let looked = self.quiet().looked;
        looked.is_none_or(|looked| looked.at.elapsed() > limits::PRESSURE_LOOK_AGE_MAX)
    }

    /// Since when nobody used it and it used nobody's CPU, as far as is known. `None`: it is used.
    pub(crate) fn quiet_since(&self) -> Option<Moment> {
        if self.is_used() {
            return None;
        }
        Some(self.quiet().since)
    }

    /// Whether that is so for as long as this.
    pub(crate) fn is_quiet(&self, now: Moment, least: Duration) -> bool {
        self.quiet_since()
            .is_some_and(|since| now.since(since) >= least)
    }

    /// It was used, or its machine has just begun to run.
    pub(crate) fn note_use(&self, now: Moment) {
        self.note(now);
        self.note_rest(now);
    }

    /// Its rest begins anew.
    pub(crate) fn note_rest(&self, now: Moment) {
        let mut quiet = self.quiet();
        quiet.since = quiet.since.max(now);
    }

    fn quiet(&self) -> MutexGuard<'_, Quiet> {
        self.quiet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(self: &Arc<Self>) -> OpenCall {
        self.full_calls.fetch_add(1, Ordering::SeqCst);
        self.open_calls.fetch_add(1, Ordering::SeqCst);
        OpenCall {
            activity: Arc::clone(self),
            follows: false,
        }
    }

    pub(crate) fn has_open_calls(&self) -> bool {
        self.open_calls.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn note(&self, now: Moment) {
        self.last.fetch_max(now.0, Ordering::SeqCst);
        self.processor().since_note = None;
    }

    pub(crate) fn idle_for(&self, now: Moment) -> Duration {
        if self.has_open_calls() {
            return Duration::ZERO;
        }
        now.since(Moment(self.last.load(Ordering::SeqCst)))
    }

    /// Notes what can be seen from outside: open calls, and a processor that works hard now.
    pub(crate) fn look(&self, now: Moment, pid: Option<i32>) {
        let works = pid.is_some_and(|pid| self.works_hard(pid));
        if works || self.has_open_calls() {
            self.note(now);
        }
    }

    /// Whether it worked on the whole since it was last seen to do something. A guest that writes
    /// back what it has cached is busy for a moment, and idle all the same.
    pub(crate) fn worked_on_the_whole(&self, pid: Option<i32>) -> bool {
        let Some(sample) = pid.and_then(Sample::take) else {
            return false;
        };
        let before = self.processor().since_note;
        before.is_some_and(|before| sample.rate_since(before) > limits::ACTIVE_CPU_MILLIS)
    }

    fn works_hard(&self, pid: i32) -> bool {
        let Some(sample) = Sample::take(pid) else {
            return false;
        };
        let mut processor = self.processor();
        processor.recent.retain(|before| before.pid == pid);
        processor.since_note = processor.since_note.filter(|before| before.pid == pid);
        processor.since_note.get_or_insert(sample);
        let works = processor
            .recent
            .front()
            .is_some_and(|before| sample.rate_since(*before) > limits::BUSY_CPU_MILLIS);
        processor.recent.push_back(sample);
        if processor.recent.len() > SAMPLES {
            processor.recent.pop_front();
        }
        works
    }

    /// What the engine has used of a CPU before something is done in the guest that is not the
    /// guest's own doing.
    pub(crate) fn before_upkeep(pid: i32) -> Option<Upkeep> {
        Sample::take(pid).map(Upkeep)
    }

    /// Leaves out what the engine has used since then.
    pub(crate) fn after_upkeep(&self, Upkeep(before): Upkeep) {
        let Some(now) = Sample::take(before.pid) else {
            return;
        };
        let used = now.used.saturating_sub(before.used);
        let leave_out = |sample: &mut Sample| {
            if sample.pid == before.pid {
                sample.used += used;
            }
        };
        let mut processor = self.processor();
        processor.recent.iter_mut().for_each(leave_out);
        processor.since_note.iter_mut().for_each(leave_out);
        drop(processor);
        self.quiet().looked.iter_mut().for_each(leave_out);
    }

    fn processor(&self) -> MutexGuard<'_, Processor> {
        self.processor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sample {
    fn take(pid: i32) -> Option<Self> {
        Some(Self {
            pid,
            at: Instant::now(),
            used: cpu_time(pid).ok()?,
        })
    }

    fn is_soon_after(self, before: Self) -> bool {
        let between = self.at.duration_since(before.at);
        self.pid == before.pid && between <= limits::PRESSURE_LOOK_AGE_MAX
    }

    /// Thousandths of one processor since `before`, of the same process.
    fn rate_since(self, before: Self) -> u64 {
        let wall = self.at.duration_since(before.at).as_millis().max(1);
        let busy = self.used.saturating_sub(before.used).as_millis();
        u64::try_from(busy * 1000 / wall).unwrap_or(u64::MAX)
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

/// The same before it sleeps for others: a command that waits does not count, a lease that code in
/// the guest took does. Gives how many commands there are.
pub(crate) async fn commands_unless_leased(agent: &AgentClient) -> Option<u64> {
    match tokio::time::timeout(ANSWER_LIMIT, agent.activity()).await {
        Ok(Ok(activity)) => (activity.busy_ms == 0).then_some(u64::from(activity.execs)),
        Ok(Err(_)) | Err(_) => None,
    }
}
