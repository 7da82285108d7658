//! The audit record: who did what.
//!
//! Entries pass a bounded queue to one writer, which adds many in one transaction: an answer does
//! not wait for the disk. A crash can lose the entries of the last moments, and a database that
//! cannot be written for ten seconds those that waited for it. A full queue makes requests wait.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dayfly_types::limits::AUDIT_QUEUE_LENGTH_MAX;
use tokio::sync::{mpsc, oneshot};

use crate::store::{AuditEntry, Store};

/// Entries that one transaction adds.
const BATCH_MAX: usize = 256;
/// How long a reader waits for what was queued before it asked.
const FLUSH_DEADLINE: Duration = Duration::from_secs(5);
/// After a failed write.
const RETRY: Duration = Duration::from_millis(500);
const ATTEMPTS_MAX: usize = 20;

#[derive(Debug)]
enum Message {
    Entry(Box<AuditEntry>),
    /// Everything before this was written.
    Flush(oneshot::Sender<()>),
}

/// The way into the record.
#[derive(Debug)]
pub struct Audit {
    sender: mpsc::Sender<Message>,
    receiver: Mutex<Option<mpsc::Receiver<Message>>>,
}

impl Default for Audit {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(AUDIT_QUEUE_LENGTH_MAX);
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
        }
    }
}

impl Audit {
    /// Adds an entry, and waits while the queue is full.
    pub(crate) async fn record(&self, entry: AuditEntry) {
        self.handle().record(entry).await;
    }

    /// A way in that can be kept.
    pub(crate) fn handle(&self) -> AuditHandle {
        AuditHandle(self.sender.clone())
    }

    /// Waits until everything that was recorded before can be read.
    pub(crate) async fn flush(&self) {
        let (done, waiting) = oneshot::channel();
        if self.sender.send(Message::Flush(done)).await.is_ok() {
            let _ = tokio::time::timeout(FLUSH_DEADLINE, waiting).await;
        }
    }

    /// Writes entries until nobody can add any. Does nothing the second time.
    pub(crate) async fn write(&self, store: &Store) {
        let receiver = self
            .receiver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(mut receiver) = receiver else {
            return;
        };
        let mut messages = Vec::new();
        while receiver.recv_many(&mut messages, BATCH_MAX).await > 0 {
            write_batch(store, messages.drain(..)).await;
        }
    }
}

/// A way into the record.
#[derive(Debug, Clone)]
pub(crate) struct AuditHandle(mpsc::Sender<Message>);

impl AuditHandle {
    /// Adds an entry, and waits while the queue is full.
    pub(crate) async fn record(&self, entry: AuditEntry) {
        // Nobody receives once the server is over; then there is no request either.
        let _ = self.0.send(Message::Entry(Box::new(entry))).await;
    }

    /// Adds an entry from where nothing can wait.
    pub(crate) fn record_now(&self, entry: AuditEntry) {
        let Err(error) = self.0.try_send(Message::Entry(Box::new(entry))) else {
            return;
        };
        match error {
            // Waits in the background, so that it is not lost.
            mpsc::error::TrySendError::Full(message) => {
                let sender = self.0.clone();
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(async move { sender.send(message).await });
                }
            }
            mpsc::error::TrySendError::Closed(_) => {}
        }
    }
}

async fn write_batch(store: &Store, messages: impl Iterator<Item = Message>) {
    let (mut entries, mut waiting) = (Vec::new(), Vec::new());
    for message in messages {
        match message {
            Message::Entry(entry) => entries.push(*entry),
            Message::Flush(done) => waiting.push(done),
        }
    }
    for attempt in 1..=ATTEMPTS_MAX {
        match store.append_audit(&entries).await {
            Ok(()) => break,
            Err(error) => {
                tracing::error!(
                    attempt,
                    count = entries.len(),
                    error = &error as &dyn std::error::Error,
                    "audit not written"
                );
                tokio::time::sleep(RETRY).await;
            }
        }
    }
    for done in waiting {
        let _ = done.send(());
    }
}
