//! The audit record: who did what.
//!
//! Entries pass a bounded queue to one writer, which adds many in one transaction: an answer does
//! not wait for the disk. While the record cannot be written, what was queued waits, keys and
//! projects are left as they are, and what finds no room in the queue is counted; when it can be
//! written again an entry says how many were lost. A crash can lose the entries of the last
//! moments. A full queue makes requests wait for a while.

mod losses;
mod repeats;
mod writer;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dayfly_types::limits::AUDIT_QUEUE_LENGTH_MAX;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::conditions::Conditions;
use crate::store::{AuditEvent, Store};
use losses::Losses;

pub use writer::AuditSettings;

/// How long a reader waits for what was queued before it asked.
const FLUSH_DEADLINE: Duration = Duration::from_secs(5);
/// How long a request waits for room in the queue.
const ROOM_DEADLINE: Duration = Duration::from_secs(5);

#[derive(Debug)]
enum Message {
    Entry(Box<AuditEvent>),
    /// Everything before this was written, or cannot be now.
    Flush(oneshot::Sender<()>),
    /// As [`Message::Flush`], and what is only counted is told as well.
    End(oneshot::Sender<()>),
}

/// The record takes no entries, and what must not happen without one does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the audit record cannot be written, so keys and projects are left as they are")]
pub(crate) struct Unrecorded;

/// The way into the record.
#[derive(Debug)]
pub struct Audit {
    handle: AuditHandle,
    receiver: Mutex<Option<mpsc::Receiver<Message>>>,
}

impl Default for Audit {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(AUDIT_QUEUE_LENGTH_MAX);
        Self {
            handle: AuditHandle {
                sender,
                state: Arc::default(),
            },
            receiver: Mutex::new(Some(receiver)),
        }
    }
}

impl Audit {
    /// Adds an entry, and waits while the queue is full.
    pub(crate) async fn record(&self, entry: AuditEvent) {
        self.handle.record(entry).await;
    }

    /// A way in that can be kept.
    pub(crate) fn handle(&self) -> AuditHandle {
        self.handle.clone()
    }

    /// For a change that must not happen without an entry.
    ///
    /// # Errors
    /// [`Unrecorded`].
    pub(crate) fn ensure_writable(&self) -> Result<(), Unrecorded> {
        if self.handle.state.is_unwritable() {
            return Err(Unrecorded);
        }
        Ok(())
    }

    /// Waits until everything that was recorded before can be read, or cannot be written.
    pub(crate) async fn flush(&self) {
        // Who reads is told what there is.
        if !self.handle.state.is_unwritable() {
            self.pass(Message::Flush).await;
        }
    }

    /// As [`Audit::flush`], for the last time.
    pub(crate) async fn end(&self) {
        self.pass(Message::End).await;
        let (sender, state) = (&self.handle.sender, &self.handle.state);
        let waiting = sender.max_capacity() - sender.capacity();
        let lost = state.losses().count();
        if state.is_unwritable() || lost > 0 {
            tracing::error!(waiting, lost, "audit entries end with this process");
        }
    }

    async fn pass(&self, message: impl FnOnce(oneshot::Sender<()>) -> Message) {
        let (done, waiting) = oneshot::channel();
        let passed = async {
            if self.handle.sender.send(message(done)).await.is_ok() {
                let _ = waiting.await;
            }
        };
        let _ = tokio::time::timeout(FLUSH_DEADLINE, passed).await;
    }

    /// Writes entries until nobody can add any. Does nothing the second time.
    pub(crate) async fn write(
        &self,
        store: &Store,
        conditions: &Conditions,
        settings: AuditSettings,
    ) {
        let receiver = self
            .receiver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(receiver) = receiver {
            let state = Arc::clone(&self.handle.state);
            writer::Writer::new(store, conditions, settings, state)
                .run(receiver)
                .await;
        }
    }
}

/// What the writer tells those who add.
#[derive(Debug, Default)]
struct State {
    is_unwritable: AtomicBool,
    losses: Mutex<Losses>,
}

impl State {
    fn is_unwritable(&self) -> bool {
        self.is_unwritable.load(Ordering::Relaxed)
    }

    fn losses(&self) -> MutexGuard<'_, Losses> {
        // Counts are added whole.
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A way into the record.
#[derive(Debug, Clone)]
pub(crate) struct AuditHandle {
    sender: mpsc::Sender<Message>,
    state: Arc<State>,
}

impl AuditHandle {
    /// Adds an entry, and waits while the queue is full.
    pub(crate) async fn record(&self, entry: AuditEvent) {
        if let Some(entry) = self.try_record(entry) {
            self.wait_for_room(entry).await;
        }
    }

    /// Adds an entry from where nothing can wait.
    pub(crate) fn record_now(&self, entry: AuditEvent) {
        let Some(entry) = self.try_record(entry) else {
            return;
        };
        // Waits in the background, so that it is not lost.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let handle = self.clone();
            runtime.spawn(async move { handle.wait_for_room(entry).await });
        }
    }

    /// Adds an entry, or counts it as lost. Gives it back when there will be room soon.
    fn try_record(&self, entry: AuditEvent) -> Option<Box<AuditEvent>> {
        match self.sender.try_send(Message::Entry(Box::new(entry))) {
            Err(TrySendError::Full(Message::Entry(entry))) => {
                if !self.state.is_unwritable() {
                    return Some(entry);
                }
                // Nobody knows when there is room.
                self.state.losses().note(&entry);
                None
            }
            // Nobody receives once the server is over; then there is no request either.
            Ok(()) | Err(TrySendError::Closed(_) | TrySendError::Full(_)) => None,
        }
    }

    async fn wait_for_room(&self, entry: Box<AuditEvent>) {
        match tokio::time::timeout(ROOM_DEADLINE, self.sender.reserve()).await {
            Ok(Ok(room)) => room.send(Message::Entry(entry)),
            Ok(Err(_)) => {}
            Err(_) => self.state.losses().note(&entry),
        }
    }
}
