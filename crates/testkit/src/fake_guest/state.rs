//! What the fake guest is, apart from any conversation: its life, its files, its volumes.

use std::collections::{BTreeMap, BTreeSet};

use dayfly_guest_proto::{
    CopyMark, FreePages, GuestError, GuestErrorCode, GuestState, Identified, Identity, Request,
    Response, Status,
};
use dayfly_types::SandboxId;
use dayfly_types::file::{DirectoryPage, FileMode, FileStat};
use dayfly_vmm::PAGE_BYTES;
use tokio::time::{Duration, Instant};

use super::execs::Execs;
use super::{FakeVolume, GuestFault};

type Outcome = Result<Response, GuestError>;

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) life: GuestState,
    /// Who it is, since the last time that it could have become a copy.
    pub(super) sandbox_id: Option<SandboxId>,
    pub(super) fault: GuestFault,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) volumes: BTreeMap<String, FakeVolume>,
    pub(super) busy_volumes: BTreeSet<String>,
    pub(super) busy_until: Option<Instant>,
    pub(super) disk_bytes: Option<u64>,
    /// Page frames that nobody uses, from the first one on.
    pub(super) free_pages: u64,
    pub(super) execs: Execs,
    pub(super) mark: Option<CopyMark>,
    pub(super) identity: Option<Identity>,
    /// When the guest thaws by itself.
    pub(super) lease_end: Option<Instant>,
    /// What the host sets in an image.
    pub(super) is_copy: bool,
}

impl State {
    pub(super) fn new(life: GuestState) -> Self {
        Self {
            life,
            sandbox_id: None,
            fault: GuestFault::None,
            files: BTreeMap::new(),
            volumes: BTreeMap::new(),
            busy_volumes: BTreeSet::new(),
            busy_until: None,
            disk_bytes: None,
            free_pages: 0,
            execs: Execs::default(),
            mark: None,
            identity: None,
            lease_end: None,
            is_copy: false,
        }
    }

    /// Ends a lease whose time has come. A copy stays as it is.
    pub(super) fn settle(&mut self) {
        if self.lease_end.is_some_and(|end| end <= Instant::now()) {
            self.lease_end = None;
            if !self.is_copy {
                self.life = GuestState::Running;
            }
        }
    }

    /// Whoever speaks to a frozen guest may speak to a copy.
    pub(super) fn note_opening(&mut self) {
        if self.life != GuestState::Running {
            self.life = GuestState::Quarantined;
            self.sandbox_id = None;
        }
    }

    pub(super) fn busy_ms(&self) -> u64 {
        let left = self
            .busy_until
            .map(|end| end.saturating_duration_since(Instant::now()));
        left.map_or(0, |left| u64::try_from(left.as_millis()).unwrap_or(0))
    }

    /// Serves what needs no channel.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "this guest plays only what tests need"
    )]
    pub(super) fn serve(&mut self, request: Request) -> Outcome {
        match request {
            Request::Status => Ok(Response::Status(Status {
                agent_version: "fake".to_owned(),
                generation: 1,
                boot_id: "00000000-0000-4000-8000-000000000000".to_owned(),
                uptime_ms: 1,
                state: self.life,
            })),
            Request::Identify(identity) => Ok(self.identify(identity)),
            Request::Thaw { .. } => self.thaw(),
            Request::Quiesce { lease_ms, mark } => {
                self.quiesce(lease_ms, mark);
                Ok(Response::Done)
            }
            Request::MountVolume {
                serial,
                path,
                read_only,
                ..
            } => self.mount(path, FakeVolume { serial, read_only }),
            Request::UnmountVolume { path } => self.unmount(&path),
            Request::GrowDisk { expect_bytes } => {
                self.disk_bytes = Some(expect_bytes);
                Ok(Response::Done)
            }
            Request::Stat { path, .. } => {
                let file = self.files.get(&path).ok_or_else(|| not_found(&path))?;
                Ok(Response::Entry(entry(&path, file.len() as u64)))
            }
            Request::ListDirectory {
                path, after, limit, ..
            } => Ok(Response::Directory(self.list(&path, after, limit))),
            Request::Remove { path, .. } => {
                self.files.remove(&path).ok_or_else(|| not_found(&path))?;
                Ok(Response::Done)
            }
            Request::FreeMemory => Ok(Response::FreeMemory {
                bytes: self.free_pages * PAGE_BYTES,
            }),
            Request::ListFreePages { .. } => Ok(Response::FreePages {
                ranges: vec![FreePages {
                    first: 0,
                    count: self.free_pages,
                }],
            }),
            Request::DescribeExec { exec_id } => self.execs.describe(&exec_id),
            Request::ListExecs { after, limit } => Ok(self.execs.list(after, limit)),
            Request::SignalProcess { exec_id, signal } => self.execs.signal(&exec_id, signal),
            Request::ForgetExec { exec_id } => Ok(self.execs.forget(&exec_id)),
            Request::MakeDirectory { .. } | Request::CloseStdin { .. } => Ok(Response::Done),
            _ => Err(GuestError::new(
                GuestErrorCode::Unsupported,
                "the fake guest cannot do this",
            )),
        }
    }

    fn identify(&mut self, identity: Identity) -> Response {
        let sandbox_id = identity.sandbox_id.clone();
        self.sandbox_id = Some(sandbox_id.clone());
        self.identity = Some(identity);
        Response::Identified(Identified {
            sandbox_id,
            hooks: Vec::new(),
            renewed: Vec::new(),
            not_renewed: Vec::new(),
        })
    }

    fn thaw(&mut self) -> Outcome {
        if self.life == GuestState::Quarantined && self.sandbox_id.is_none() {
            return Err(GuestError::new(GuestErrorCode::WrongState, "no identity"));
        }
        self.life = GuestState::Running;
        self.lease_end = None;
        self.is_copy = false;
        Ok(Response::Done)
    }

    fn quiesce(&mut self, lease_ms: Option<u64>, mark: Option<CopyMark>) {
        // In quarantine nothing changes: a copy must not talk itself out of being one.
        if self.life == GuestState::Quarantined {
            return;
        }
        self.life = GuestState::Quiesced;
        self.is_copy = false;
        let lease = lease_ms.filter(|_| mark.is_some());
        self.lease_end = lease.map(|ms| Instant::now() + Duration::from_millis(ms));
        self.mark = mark;
    }

    fn mount(&mut self, path: String, volume: FakeVolume) -> Outcome {
        if !path.starts_with('/') {
            let text = "the path of a volume is not absolute";
            return Err(GuestError::new(GuestErrorCode::Invalid, text));
        }
        let is_other = |mounted: &FakeVolume| *mounted != volume;
        if self.volumes.get(&path).is_some_and(is_other) {
            let text = format!("{path}: another volume is mounted here");
            return Err(GuestError::new(GuestErrorCode::Exists, text));
        }
        self.volumes.insert(path, volume);
        Ok(Response::Done)
    }

    fn unmount(&mut self, path: &str) -> Outcome {
        if self.volumes.contains_key(path) && self.busy_volumes.contains(path) {
            let text = format!("{path}: in use");
            return Err(GuestError::new(GuestErrorCode::Busy, text));
        }
        self.volumes.remove(path);
        Ok(Response::Done)
    }

    /// The files of one directory, in the order of their names.
    fn list(&self, directory: &str, after: Option<String>, limit: u32) -> DirectoryPage {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let inside = self.files.iter().filter_map(|(path, bytes)| {
            let name = path.strip_prefix(directory)?.strip_prefix('/')?;
            let is_listed = !name.contains('/') && after.as_deref() < Some(name);
            is_listed.then(|| entry(path, bytes.len() as u64))
        });
        let mut entries: Vec<FileStat> = inside.take(limit.saturating_add(1)).collect();
        let has_more = entries.len() > limit;
        entries.truncate(limit);
        DirectoryPage { entries, has_more }
    }

    pub(super) fn read(
        &self,
        path: &str,
        offset: u64,
        limit: Option<u64>,
    ) -> Result<(u64, Vec<u8>), GuestError> {
        let content = self.files.get(path).ok_or_else(|| not_found(path))?;
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        let limit = limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        });
        let bytes = content.iter().skip(skip).take(limit).copied().collect();
        Ok((content.len() as u64, bytes))
    }
}

fn entry(path: &str, size: u64) -> FileStat {
    FileStat {
        name: path.rsplit('/').next().unwrap_or(path).to_owned(),
        path: path.to_owned(),
        is_dir: false,
        is_symlink: false,
        size,
        mode: FileMode::of(0o644),
        mtime: 0,
        uid: 1000,
        gid: 1000,
    }
}

fn not_found(path: &str) -> GuestError {
    GuestError::new(GuestErrorCode::NotFound, format!("{path}: no such file"))
}
