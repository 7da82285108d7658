//! A slot for tests: everything that a jail needs, gone when it is dropped.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use dayfly_attacker::engine::{self, Attempt, Came};
use dayfly_host::cgroup::{Cgroup, CgroupLimits, CgroupTree};
use dayfly_host::engine_root::{EngineRootSpec, RootFile, ensure_engine_root};
use dayfly_host::jail::{
    BindMount, JailCalls, JailLaunchError, JailSpec, MountAccess, ResourceLimits, launch,
};
use dayfly_host::posture::{DescriptorClass, DescriptorRule, Expected, Posture, read_posture};
use dayfly_host::process::{Exit, Pidfd, ProcessIdentity, set_child_subreaper};
use dayfly_host::{files, netns};
use tempfile::TempDir;

pub(crate) const LIMIT: Duration = Duration::from_secs(30);
pub(crate) const CGROUP_LIMITS: CgroupLimits = CgroupLimits {
    memory_bytes: 512 << 20,
    cpu_quota_percent: 100,
    pids_max: 32,
};

/// A number that no other slot of this test program has.
fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) struct Slot {
    tree: CgroupTree,
    pub(crate) cgroup: Cgroup,
    pub(crate) spec: JailSpec,
    pub(crate) directory: PathBuf,
    _scratch: TempDir,
}

impl Slot {
    /// `None` when the tests cannot run here, with the reason on standard output.
    pub(crate) fn new() -> Option<Self> {
        Self::with_root(&EngineRootSpec {
            label: "a test".to_owned(),
            program: PathBuf::from("/bin/sleep"),
            files: vec![RootFile::same(engine::PROGRAM)],
            mount_directories: ["/run", "/template", "/spare"].map(PathBuf::from).into(),
            mount_files: vec![PathBuf::from("/disk")],
        })
    }

    pub(crate) fn with_root(root: &EngineRootSpec) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: a jail needs root");
            return None;
        }
        set_child_subreaper().unwrap();
        let number = next_number();
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().canonicalize().unwrap();
        for name in ["run", "template", "other", "roots"] {
            fs::create_dir(directory.join(name)).unwrap();
        }
        let uid = 790_000 + number;
        std::os::unix::fs::chown(directory.join("run"), Some(uid), Some(uid)).unwrap();
        netns::create(&directory.join("net")).unwrap();
        let tree = CgroupTree::open(&format!("jail-{}-{number}", std::process::id())).unwrap();
        let cgroup = tree.create("slot", &CGROUP_LIMITS).unwrap();
        let built = ensure_engine_root(root, &directory.join("roots")).unwrap();
        let spec = spec(uid, &cgroup, &directory, built.path, root.program.clone());
        Some(Self {
            tree,
            cgroup,
            spec,
            directory,
            _scratch: scratch,
        })
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.directory.join("engine.log")
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap()
    }

    pub(crate) async fn launch(&self, spec: &JailSpec) -> Result<ProcessIdentity, JailLaunchError> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())
            .unwrap();
        launch(
            Path::new(env!("CARGO_BIN_EXE_dayfly-jail")),
            spec,
            OwnedFd::from(log),
            LIMIT,
        )
        .await
    }

    /// Somebody who has taken over the program, and tries one thing after the other.
    pub(crate) fn taken_over(&self, attempts: &[Attempt]) -> JailSpec {
        JailSpec {
            program: PathBuf::from(engine::PROGRAM),
            arguments: engine::arguments(attempts),
            ..self.spec.clone()
        }
    }

    /// How it ended, and what came of each attempt until then.
    pub(crate) async fn run(&self, spec: &JailSpec) -> (Exit, Vec<Came>) {
        // Each run has a log of its own.
        let _ = fs::remove_file(self.log_path());
        let identity = self.launch(spec).await.unwrap();
        let handle = Pidfd::open(identity).unwrap();
        let exit = tokio::time::timeout(LIMIT, handle.wait()).await;
        (exit.unwrap().unwrap(), engine::outcomes(&self.log()))
    }

    /// What a process with nothing open but its standard descriptors must look like.
    pub(crate) fn expected(&self) -> Expected {
        let log = self.log_path().to_string_lossy().into_owned();
        let descriptors = vec![
            DescriptorRule::exactly(DescriptorClass::CharacterDevice, "/dev/null", 1),
            DescriptorRule::exactly(DescriptorClass::File, log, 2),
        ];
        Expected::of_jail(&self.spec, self.cgroup.membership(), descriptors).unwrap()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let members = self.cgroup.pids().unwrap().into_iter();
        let handles: Vec<_> = members
            .filter_map(|pid| Pidfd::open(ProcessIdentity::of(pid).ok()?).ok())
            .collect();
        self.cgroup.kill_all(LIMIT).unwrap();
        for handle in handles {
            let _how = handle.reap();
        }
        self.cgroup.remove(LIMIT).unwrap();
        self.tree.remove(LIMIT).unwrap();
        netns::remove(&self.directory.join("net")).unwrap();
        netns::remove(&self.directory.join("host-net")).unwrap();
        files::remove_tree(&self.directory.join("run")).unwrap();
    }
}

fn spec(uid: u32, cgroup: &Cgroup, directory: &Path, root: PathBuf, program: PathBuf) -> JailSpec {
    let bind = |name: &str, access| BindMount {
        source: directory.join(name),
        target: Path::new("/").join(name),
        access,
    };
    JailSpec {
        uid,
        gid: uid,
        cgroup_procs: cgroup.procs_paths(),
        netns: directory.join("net"),
        hostname: "engine".to_owned(),
        root,
        mounts: vec![
            bind("run", MountAccess::ReadWrite),
            bind("template", MountAccess::ReadOnly),
        ],
        devices: vec![PathBuf::from("/dev/net/tun")],
        limits: ResourceLimits {
            open_files: 256,
            locked_memory_bytes: 0,
            file_size_bytes: Some(1 << 30),
        },
        calls: JailCalls::EmulatedEngine,
        out_of_memory_adjustment: 500,
        program,
        arguments: vec!["1000".to_owned()],
        environment: BTreeMap::new(),
        working_directory: PathBuf::from("/run"),
    }
}

/// The posture once the process runs `program`, which an `exec` takes a moment to do.
pub(crate) fn posture_of(identity: ProcessIdentity, program: &str) -> Posture {
    let deadline = Instant::now() + LIMIT;
    loop {
        let posture = read_posture(identity).unwrap();
        if posture.executable.ends_with(program) {
            return posture;
        }
        assert!(
            Instant::now() < deadline,
            "{program} was not executed in time"
        );
        std::thread::yield_now();
    }
}
