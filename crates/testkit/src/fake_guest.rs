//! A guest without a machine: it speaks the agent protocol and plays a few scripted commands.
//!
//! `true`, `exit N`, `echo WORDS`, `hang` and `! command -v PROGRAM || ...` are all it can run, and
//! its files are a map. It goes wrong only when told to.

mod execs;
mod session;
mod state;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_guest_proto::{CopyMark, GuestState, Identity, PortRole};
use dayfly_types::SandboxId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Duration, Instant, sleep_until};

use crate::fake_engine::{GuestFactory, GuestSockets};
use session::Session;
use state::State;

/// What the guest does with its next call instead of serving it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GuestFault {
    #[default]
    None,
    /// Sends bytes that are no frame.
    Garbage,
    /// Reads on and answers nothing any more.
    Silence,
    /// Closes its ports for good.
    Death,
}

/// One guest. Clones are the same guest, for a test that watches or breaks it.
#[derive(Debug, Clone)]
pub struct FakeGuest {
    state: Arc<Mutex<State>>,
}

/// A volume that the guest was told to mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeVolume {
    pub serial: String,
    pub read_only: bool,
}

impl FakeGuest {
    /// A guest that has booted: user code may run.
    #[must_use]
    pub fn booted() -> Self {
        Self::in_state(GuestState::Running)
    }

    /// A guest that was restored: it waits for its identity.
    #[must_use]
    pub fn restored() -> Self {
        Self::in_state(GuestState::Quarantined)
    }

    fn in_state(life: GuestState) -> Self {
        Self {
            state: Arc::new(Mutex::new(State::new(life))),
        }
    }

    /// What a restore of this guest's memory would be: another guest, with the copy mark set.
    #[must_use]
    pub fn copy(&self) -> Self {
        let mut state = self.lock().clone();
        state.is_copy = true;
        state.fault = GuestFault::None;
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Makes a new guest for every machine of a fake engine.
    pub fn factory(make: impl Fn() -> Self + Send + Sync + 'static) -> GuestFactory {
        Arc::new(move |sockets| Box::pin(make().run(sockets)))
    }

    pub fn set_fault(&self, fault: GuestFault) {
        self.lock().fault = fault;
    }

    /// Whose guest it is, once it was told.
    #[must_use]
    pub fn sandbox_id(&self) -> Option<SandboxId> {
        self.lock().sandbox_id.clone()
    }

    #[must_use]
    pub fn state(&self) -> GuestState {
        self.lock().life
    }

    /// The last identity that it was given.
    #[must_use]
    pub fn identity(&self) -> Option<Identity> {
        self.lock().identity.clone()
    }

    /// The mark of the last quiesce.
    #[must_use]
    pub fn mark(&self) -> Option<CopyMark> {
        self.lock().mark.clone()
    }

    /// What is mounted at a path.
    #[must_use]
    pub fn volume(&self, path: &str) -> Option<FakeVolume> {
        self.lock().volumes.get(path).cloned()
    }

    /// How large the writable disk was said to be.
    #[must_use]
    pub fn disk_bytes(&self) -> Option<u64> {
        self.lock().disk_bytes
    }

    /// Plays a kernel that has so many pages that nobody uses.
    pub fn set_free_pages(&self, pages: u64) {
        self.lock().free_pages = pages;
    }

    /// Execs that run, with or without a conversation.
    #[must_use]
    pub fn running_execs(&self) -> u32 {
        self.lock().execs.running()
    }

    /// Plays a process that uses a volume, or has stopped to.
    pub fn set_volume_busy(&self, path: &str, is_busy: bool) {
        let mut state = self.lock();
        if is_busy {
            state.busy_volumes.insert(path.to_owned());
        } else {
            state.busy_volumes.remove(path);
        }
    }

    /// Plays code that takes a busy lease.
    pub fn set_busy(&self, lease: Duration) {
        self.lock().busy_until = Some(Instant::now() + lease);
    }

    #[must_use]
    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        self.lock().files.get(path).cloned()
    }

    /// Serves one host after the other, while the machine runs.
    pub async fn run(self, mut sockets: GuestSockets) {
        loop {
            let pair = async { tokio::try_join!(sockets.control.accept(), sockets.bulk.accept()) };
            let Ok(((control, _), (bulk, _))) = pair.await else {
                return;
            };
            if sockets
                .running
                .wait_for(|is_running| *is_running)
                .await
                .is_err()
            {
                return;
            }
            let _ = self.serve(control, bulk).await;
            if self.lock().fault == GuestFault::Death {
                return;
            }
        }
    }

    /// Serves one host until it leaves.
    ///
    /// # Errors
    /// When a socket breaks, or the guest was told to die.
    pub async fn serve(&self, control: UnixStream, bulk: UnixStream) -> io::Result<()> {
        let mut session = Session::new(self.clone());
        let result = Self::converse(&mut session, control, bulk).await;
        session.end_conversation();
        result
    }

    async fn converse(
        session: &mut Session,
        control: UnixStream,
        bulk: UnixStream,
    ) -> io::Result<()> {
        let (mut control_bytes, mut bulk_bytes) = (vec![0; 65_536], vec![0; 65_536]);
        let (mut control_in, mut control_out) = control.into_split();
        let (mut bulk_in, mut bulk_out) = bulk.into_split();
        loop {
            let deadline = session.deadline();
            let count = tokio::select! {
                count = control_in.read(&mut control_bytes) => {
                    let count = count?;
                    session.receive(PortRole::Control, &control_bytes[..count])?;
                    count
                }
                count = bulk_in.read(&mut bulk_bytes) => {
                    let count = count?;
                    session.receive(PortRole::Bulk, &bulk_bytes[..count])?;
                    count
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    session.expire();
                    1
                }
            };
            if count == 0 {
                return Ok(());
            }
            bulk_out
                .write_all(&std::mem::take(&mut session.bulk))
                .await?;
            control_out
                .write_all(&std::mem::take(&mut session.control))
                .await?;
        }
    }

    /// Whoever looks at the state sees a lease that is over as over.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.settle();
        state
    }
}
