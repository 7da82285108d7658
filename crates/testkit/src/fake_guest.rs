//! A guest without a machine: it speaks the agent protocol and plays a few scripted commands.
//!
//! `true`, `exit N`, `echo WORDS` and `hang` are all it can run, and its files are a map. It goes
//! wrong only when told to.

mod session;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_guest_proto::{
    FileEntry, GuestError, GuestErrorCode, GuestState, PortRole, Request, Response, Status,
};
use dayfly_types::SandboxId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep_until};

use crate::fake_engine::{GuestFactory, GuestSockets};
use session::Session;

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

#[derive(Debug)]
struct State {
    state: GuestState,
    sandbox_id: Option<SandboxId>,
    fault: GuestFault,
    files: BTreeMap<String, Vec<u8>>,
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

    fn in_state(state: GuestState) -> Self {
        let (sandbox_id, fault, files) = (None, GuestFault::None, BTreeMap::new());
        Self {
            state: Arc::new(Mutex::new(State {
                state,
                sandbox_id,
                fault,
                files,
            })),
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
        self.lock().state
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FakeGuest {
    /// Serves what needs no channel.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "this guest plays only what tests need"
    )]
    fn serve_plain(&self, request: Request) -> Result<Response, GuestError> {
        let mut state = self.lock();
        match request {
            Request::Status => Ok(Response::Status(Status {
                agent_version: "fake".to_owned(),
                generation: 1,
                boot_id: "00000000-0000-4000-8000-000000000000".to_owned(),
                uptime_ms: 1,
                state: state.state,
            })),
            Request::Identify(identity) => {
                state.sandbox_id = Some(identity.sandbox_id.clone());
                Ok(Response::Identified {
                    sandbox_id: identity.sandbox_id,
                })
            }
            Request::Thaw { .. }
                if state.state != GuestState::Running && state.sandbox_id.is_none() =>
            {
                Err(GuestError::new(GuestErrorCode::WrongState, "no identity"))
            }
            Request::Thaw { .. } => {
                state.state = GuestState::Running;
                Ok(Response::Done)
            }
            Request::Stat { path, .. } => {
                let size = state
                    .files
                    .get(&path)
                    .ok_or_else(|| not_found(&path))?
                    .len() as u64;
                Ok(Response::Entry(entry(&path, size)))
            }
            Request::Remove { path, .. } => {
                state.files.remove(&path).ok_or_else(|| not_found(&path))?;
                Ok(Response::Done)
            }
            Request::MakeDirectory { .. } | Request::CloseStdin { .. } => Ok(Response::Done),
            _ => Err(GuestError::new(
                GuestErrorCode::Unsupported,
                "the fake guest cannot do this",
            )),
        }
    }

    fn read(
        &self,
        path: &str,
        offset: u64,
        limit: Option<u64>,
    ) -> Result<(u64, Vec<u8>), GuestError> {
        let state = self.lock();
        let content = state.files.get(path).ok_or_else(|| not_found(path))?;
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        let limit = limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        });
        let bytes = content.iter().skip(skip).take(limit).copied().collect();
        Ok((content.len() as u64, bytes))
    }
}

fn entry(path: &str, size: u64) -> FileEntry {
    FileEntry {
        name: path.rsplit('/').next().unwrap_or(path).to_owned(),
        path: path.to_owned(),
        is_dir: false,
        is_symlink: false,
        size,
        mode: "0644".to_owned(),
        mtime: 0,
        uid: 1000,
        gid: 1000,
    }
}

fn not_found(path: &str) -> GuestError {
    GuestError::new(GuestErrorCode::NotFound, format!("{path}: no such file"))
}
