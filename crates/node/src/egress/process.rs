//! The egress process: how it is started, and how it is ended.

use std::fs;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::num::NonZeroU64;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use dayfly_host::cgroup::CgroupError;
use dayfly_host::jail::{self, BindMount, JailCalls, JailSpec, MountAccess, ResourceLimits};
use dayfly_host::process::ProcessIdentity;
use dayfly_host::{CgroupLimits, CgroupTree};
use dayfly_types::egress::InternalNetworks;
use dayfly_types::{LogFormat, limits};

/// Where the process finds its run directory.
const RUN_INSIDE: &str = "/run";
const SOCKET_FILE: &str = "control.sock";
const LOG_FILE: &str = "egress.log";
/// The name of its control group among those of the slots, which are numbers.
pub const EGRESS_GROUP: &str = "egress";
const OPEN_FILES: u64 = 65_536;
const MEMORY_BYTES: u64 = 1 << 30;
const CPU_PERCENT: u32 = 200;
const THREADS_MAX: u32 = 64;
/// A log beyond this is begun anew at the next start.
const LOG_BYTES_MAX: u64 = 16 << 20;

/// Settings of the process.
#[derive(Debug, Clone)]
pub struct EgressProcess {
    /// Where the slots have their control groups, and it has its own.
    pub cgroups: CgroupTree,
    pub jail_program: PathBuf,
    /// What the process sees as `/`, with the program in it.
    pub root: PathBuf,
    /// The program inside the root.
    pub program: PathBuf,
    pub run_directory: PathBuf,
    /// User and group that nothing else uses.
    pub uid: u32,
    /// The network namespace that it dials from.
    pub netns: PathBuf,
    pub resolvers: Vec<SocketAddr>,
    /// What one sandbox may send, and as much again receive. None: as much as goes through.
    pub bytes_per_second: Option<NonZeroU64>,
    /// What of private space the operator has opened, and to whom.
    pub internal_networks: InternalNetworks,
    /// The HTTP proxy that connections to public addresses go through.
    pub proxy: Option<SocketAddrV4>,
    /// How it writes its log.
    pub log_format: LogFormat,
}

/// Why the process does not run.
#[derive(Debug, thiserror::Error)]
pub enum StartEgressError {
    #[error("cannot prepare {path}")]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot make the control group of the egress process")]
    Group(#[source] CgroupError),
    #[error("cannot start the egress process")]
    Launch(#[source] jail::JailLaunchError),
}

impl EgressProcess {
    /// Where it listens for the node.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.run_directory.join(SOCKET_FILE)
    }

    /// What the process was started from and with, as it is now. It is kept where the process
    /// itself cannot write.
    fn settings(&self) -> String {
        let namespace = fs::metadata(&self.netns).map(|found| found.ino()).ok();
        format!("{:?} {namespace:?} {:?}\n", self.root, self.arguments())
    }

    fn settings_file(&self) -> PathBuf {
        self.run_directory.with_file_name("settings")
    }

    /// Whether what runs was started from this program, with these settings.
    pub(super) fn is_current(&self) -> bool {
        fs::read_to_string(self.settings_file()).is_ok_and(|found| found == self.settings())
    }

    /// Starts it in place of whatever of it runs.
    ///
    /// # Errors
    /// [`StartEgressError`].
    pub(super) async fn start(&self) -> Result<ProcessIdentity, StartEgressError> {
        let here = self.clone();
        let prepared = tokio::task::spawn_blocking(move || here.prepare()).await;
        let (spec, log) = prepared.unwrap_or_else(|error| {
            Err(StartEgressError::Directory {
                path: self.run_directory.clone(),
                source: io::Error::other(error),
            })
        })?;
        let limit = limits::ENGINE_START_DEADLINE;
        jail::launch(&self.jail_program, &spec, log.into(), limit)
            .await
            .map_err(StartEgressError::Launch)
    }

    fn prepare(&self) -> Result<(JailSpec, fs::File), StartEgressError> {
        self.end().map_err(StartEgressError::Group)?;
        let limits = CgroupLimits {
            memory_bytes: MEMORY_BYTES,
            cpu_quota_percent: CPU_PERCENT,
            pids_max: THREADS_MAX,
        };
        let group = self.cgroups.create(EGRESS_GROUP, &limits);
        let group = group.map_err(StartEgressError::Group)?;
        let log = self.prepare_directory().map_err(|source| {
            let path = self.run_directory.clone();
            StartEgressError::Directory { path, source }
        })?;
        Ok((self.spec(group.procs_paths()), log))
    }

    fn prepare_directory(&self) -> io::Result<fs::File> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.run_directory)?;
        chown(&self.run_directory, Some(self.uid), Some(self.uid))?;
        remove_if_there(&self.socket())?;
        fs::write(self.settings_file(), self.settings())?;
        let log = self.run_directory.join(LOG_FILE);
        if fs::symlink_metadata(&log).is_ok_and(|found| found.len() > LOG_BYTES_MAX) {
            remove_if_there(&log)?;
        }
        // The directory belongs to the process, so a link that it planted must not be followed.
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .custom_flags(libc_no_follow())
            .open(log)
    }

    fn arguments(&self) -> Vec<String> {
        let socket = Path::new(RUN_INSIDE).join(SOCKET_FILE);
        let mut arguments = vec!["--socket".to_owned(), socket.display().to_string()];
        for resolver in &self.resolvers {
            arguments.extend(["--resolver".to_owned(), resolver.to_string()]);
        }
        if let Some(rate) = self.bytes_per_second {
            arguments.extend(["--bytes-per-second".to_owned(), rate.to_string()]);
        }
        if let Some(proxy) = self.proxy {
            arguments.extend(["--proxy".to_owned(), proxy.to_string()]);
        }
        // Its environment is empty, and text is what it writes by itself.
        if self.log_format != LogFormat::Text {
            let format = self.log_format.as_str().to_owned();
            arguments.extend(["--log-format".to_owned(), format]);
        }
        if !self.internal_networks.is_empty() {
            let text = serde_json::to_string(&self.internal_networks);
            // Such values are always written; without them less is open.
            let text = text.unwrap_or_else(|_| "[]".to_owned());
            arguments.extend(["--internal-networks".to_owned(), text]);
        }
        arguments
    }

    fn spec(&self, cgroup_procs: Vec<PathBuf>) -> JailSpec {
        JailSpec {
            uid: self.uid,
            gid: self.uid,
            cgroup_procs,
            netns: self.netns.clone(),
            hostname: "egress".to_owned(),
            root: self.root.clone(),
            mounts: vec![BindMount {
                source: self.run_directory.clone(),
                target: PathBuf::from(RUN_INSIDE),
                access: MountAccess::ReadWrite,
            }],
            devices: Vec::new(),
            limits: ResourceLimits {
                open_files: open_files(),
                locked_memory_bytes: 64 << 10,
                file_size_bytes: Some(LOG_BYTES_MAX * 2),
            },
            // One process serves every sandbox of the host.
            out_of_memory_adjustment: 0,
            calls: JailCalls::Egress,
            program: self.program.clone(),
            arguments: self.arguments(),
            environment: std::collections::BTreeMap::new(),
            working_directory: PathBuf::from(RUN_INSIDE),
        }
    }

    /// Ends it and removes its control group. What is not there is no error.
    pub(super) fn end(&self) -> Result<(), CgroupError> {
        if !self.cgroups.list()?.iter().any(|name| name == EGRESS_GROUP) {
            return Ok(());
        }
        let group = self.cgroups.open_existing(EGRESS_GROUP)?;
        group.kill_all(limits::TEARDOWN_STEP_DEADLINE)?;
        group.remove(limits::TEARDOWN_STEP_DEADLINE)
    }
}

/// As many as are wanted, or as this host lets its root have.
fn open_files() -> u64 {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    most.map_or(OPEN_FILES, |most| most.min(OPEN_FILES))
}

fn libc_no_follow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default()
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
