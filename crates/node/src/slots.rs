//! Slots of this host: the only [`SlotProvider`] that the kernel enforces.
//!
//! A slot is a uid that nothing else uses, a directory that only that uid can write, a control
//! group, and a network namespace with a tap that only that uid can attach to and no way out. All
//! four are found again by the slot's number after a crash, so a release can be repeated by whoever
//! comes next.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dayfly_host::cgroup::{Cgroup, CgroupError};
use dayfly_host::jail::{self, BindMount, JailCalls, JailSpec, MountAccess, ResourceLimits};
use dayfly_host::{CgroupLimits, CgroupTree, net, netns};
use dayfly_types::{CpuMillis, limits};
use dayfly_vmm::{
    Accelerator, CpuWeight, EngineCommand, EngineProcess, EngineView, LaunchError, Slot, SlotError,
    SlotIndex, SlotLimits, SlotProvider, file_names,
};

/// Where the run directory appears to an engine.
const ENGINE_RUN_DIRECTORY: &str = "/run";

/// Settings of one node's slots.
#[derive(Debug, Clone)]
pub struct HostSlotsConfig {
    /// Tells this daemon's control groups from another's on the same host.
    pub instance: String,
    pub slots_directory: PathBuf,
    pub netns_directory: PathBuf,
    /// Slot `n` runs as this plus `n`, user and group.
    pub first_uid: u32,
    pub jail_program: PathBuf,
}

/// The provider.
#[derive(Debug, Clone)]
pub struct HostSlots {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: HostSlotsConfig,
    cgroups: CgroupTree,
    used: Mutex<BTreeSet<u32>>,
}

type Source = Box<dyn Error + Send + Sync>;

fn step(slot: SlotIndex, what: &'static str) -> impl FnOnce(Source) -> SlotError {
    move |source| SlotError::Step { slot, what, source }
}

impl HostSlots {
    /// Opens the slots of this host. What an earlier run left counts as taken until released.
    ///
    /// # Errors
    /// [`SlotError`] when directories or control groups cannot be had.
    pub fn open(config: HostSlotsConfig) -> Result<Self, SlotError> {
        let none = SlotIndex(0);
        for directory in [&config.slots_directory, &config.netns_directory] {
            fs::create_dir_all(directory)
                .map_err(|e| step(none, "make the directory")(Box::new(e)))?;
        }
        let cgroups = CgroupTree::open(&config.instance)
            .map_err(|e| step(none, "open the control groups")(Box::new(e)))?;
        let inner = Inner {
            config,
            cgroups,
            used: Mutex::new(BTreeSet::new()),
        };
        let left = inner.list()?;
        inner.lock().extend(left.iter().map(|index| index.0));
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Where the network namespace of a slot is kept, see [`dayfly_host::net`].
    #[must_use]
    pub fn netns_path(&self, index: SlotIndex) -> PathBuf {
        self.inner.netns(index)
    }

    /// The control groups of the instance, for what runs beside the slots.
    #[must_use]
    pub fn cgroups(&self) -> CgroupTree {
        self.inner.cgroups.clone()
    }

    /// Gives back what the instance has beside its slots, when there is no slot. For the end of a
    /// node; the next start makes it again.
    pub async fn close(&self) {
        let closed = self.blocking(|inner| {
            if inner.cgroups.list().is_ok_and(|groups| groups.is_empty()) {
                let removed = inner.cgroups.remove(limits::TEARDOWN_STEP_DEADLINE);
                removed.map_err(|e| step(SlotIndex(0), "remove the control group")(Box::new(e)))?;
            }
            Ok(())
        });
        if let Err(error) = closed.await {
            tracing::warn!(error = %crate::error_chain(&error), "empty control groups stay");
        }
    }

    /// Runs blocking work to its end, whether or not the caller still waits.
    async fn blocking<T, F>(&self, work: F) -> Result<T, SlotError>
    where
        T: Send + 'static,
        F: FnOnce(&Inner) -> Result<T, SlotError> + Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        let joined = tokio::task::spawn_blocking(move || work(&inner)).await;
        joined.map_err(|e| step(SlotIndex(0), "finish the work")(Box::new(e)))?
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn directory(&self, index: SlotIndex) -> PathBuf {
        self.config.slots_directory.join(index.0.to_string())
    }

    fn netns(&self, index: SlotIndex) -> PathBuf {
        self.config.netns_directory.join(index.0.to_string())
    }

    fn slot(&self, index: SlotIndex) -> Slot {
        Slot {
            index,
            run_directory: self.directory(index).join("run"),
            engine_run_directory: PathBuf::from(ENGINE_RUN_DIRECTORY),
            engine_view: EngineView::Jailed,
        }
    }

    fn uid(&self, index: SlotIndex) -> u32 {
        self.config.first_uid + index.0
    }

    fn reserve(&self) -> Result<SlotIndex, SlotError> {
        let mut used = self.lock();
        let free = (0..limits::SLOTS_MAX).find(|index| !used.contains(index));
        let index = free.ok_or(SlotError::Exhausted {
            limit: limits::SLOTS_MAX,
        })?;
        used.insert(index);
        Ok(SlotIndex(index))
    }

    fn acquire(&self) -> Result<Slot, SlotError> {
        let index = self.reserve()?;
        let made = self.make(index);
        if made.is_err() {
            // Whatever was made of it goes again; if that fails too, the number stays taken.
            self.release(index)?;
        }
        made
    }

    fn make(&self, index: SlotIndex) -> Result<Slot, SlotError> {
        let slot = self.slot(index);
        let what = "make the directory";
        fs::DirBuilder::new()
            .mode(0o711)
            .create(self.directory(index))
            .map_err(|e| step(index, what)(Box::new(e)))?;
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&slot.run_directory)
            .map_err(|e| step(index, what)(Box::new(e)))?;
        let uid = self.uid(index);
        std::os::unix::fs::chown(&slot.run_directory, Some(uid), Some(uid))
            .map_err(|e| step(index, "hand over the directory")(Box::new(e)))?;
        netns::create(&self.netns(index))
            .map_err(|e| step(index, "make the network namespace")(Box::new(e)))?;
        net::make_slot_network(&self.netns(index), uid)
            .map_err(|e| step(index, "make the network")(Box::new(e)))?;
        Ok(slot)
    }

    fn release(&self, index: SlotIndex) -> Result<(), SlotError> {
        let limit = limits::TEARDOWN_STEP_DEADLINE;
        let name = index.0.to_string();
        // Processes first: the rest cannot be removed while they use it.
        let groups = self
            .cgroups
            .list()
            .map_err(|e| step(index, "list control groups")(Box::new(e)))?;
        if groups.contains(&name) {
            let group = self
                .cgroups
                .open_existing(&name)
                .map_err(|e| step(index, "open the control group")(Box::new(e)))?;
            group
                .kill_all(limit)
                .map_err(|e| step(index, "end the processes")(Box::new(e)))?;
            group
                .remove(limit)
                .map_err(|e| step(index, "remove the control group")(Box::new(e)))?;
        }
        netns::remove(&self.netns(index))
            .map_err(|e| step(index, "remove the network namespace")(Box::new(e)))?;
        dayfly_host::files::remove_tree(&self.directory(index))
            .map_err(|e| step(index, "remove the directory")(Box::new(e)))?;
        self.lock().remove(&index.0);
        Ok(())
    }

    fn list(&self) -> Result<Vec<SlotIndex>, SlotError> {
        let none = SlotIndex(0);
        let mut found = BTreeSet::new();
        let groups = self
            .cgroups
            .list()
            .map_err(|e| step(none, "list control groups")(Box::new(e)))?;
        found.extend(groups.iter().filter_map(|name| name.parse::<u32>().ok()));
        for directory in [&self.config.slots_directory, &self.config.netns_directory] {
            let entries = fs::read_dir(directory)
                .map_err(|e| step(none, "list the directory")(Box::new(e)))?;
            for entry in entries {
                let entry = entry.map_err(|e| step(none, "list the directory")(Box::new(e)))?;
                found.extend(
                    entry
                        .file_name()
                        .to_str()
                        .and_then(|name| name.parse::<u32>().ok()),
                );
            }
        }
        Ok(found.into_iter().map(SlotIndex).collect())
    }

    /// Makes the slot's control group, or finds it, and says how to get in.
    fn cgroup_procs(&self, index: SlotIndex, wanted: SlotLimits) -> Result<Vec<PathBuf>, Source> {
        let limits = CgroupLimits {
            memory_bytes: (u64::from(wanted.memory) + limits::ENGINE_OVERHEAD_MIB) << 20,
            cpu_quota_percent: u32::from(wanted.vcpus.get()) * 100,
            pids_max: u32::try_from(limits::ENGINE_PIDS_MAX)?,
        };
        let group = self.cgroups.create(&index.0.to_string(), &limits)?;
        group.set_cpu_weight(percent_of(CpuWeight::Starting))?;
        Ok(group.procs_paths())
    }

    fn limit_cpu(&self, index: SlotIndex, cpu: CpuMillis) -> Result<(), SlotError> {
        let what = "limit the processor time";
        let group = self
            .group(index)
            .map_err(|e| step(index, what)(Box::new(e)))?;
        let mut limits = group.limits().map_err(|e| step(index, what)(Box::new(e)))?;
        limits.cpu_quota_percent = (cpu.get() / 10).max(1);
        group
            .set_limits(&limits)
            .map_err(|e| step(index, what)(Box::new(e)))?;
        Ok(())
    }

    fn weigh_cpu(&self, index: SlotIndex, weight: CpuWeight) -> Result<(), SlotError> {
        self.group(index)
            .and_then(|group| group.set_cpu_weight(percent_of(weight)))
            .map_err(|e| step(index, "weigh the processor time")(Box::new(e)))
    }

    fn group(&self, index: SlotIndex) -> Result<Cgroup, CgroupError> {
        self.cgroups.open_existing(&index.0.to_string())
    }

    fn jail_spec(&self, slot: &Slot, command: EngineCommand) -> Result<JailSpec, Source> {
        let uid = self.uid(slot.index);
        let mut mounts = vec![BindMount {
            source: slot.run_directory.clone(),
            target: slot.engine_run_directory.clone(),
            access: MountAccess::ReadWrite,
        }];
        mounts.extend(command.mounts.into_iter().map(|mount| BindMount {
            source: mount.host,
            target: mount.target,
            access: MountAccess::ReadOnly,
        }));
        Ok(JailSpec {
            uid,
            gid: uid,
            cgroup_procs: self.cgroup_procs(slot.index, command.limits)?,
            netns: self.netns(slot.index),
            hostname: "engine".to_owned(),
            root: command.root,
            mounts,
            devices: command.devices,
            limits: ResourceLimits {
                open_files: limits::ENGINE_OPEN_FILES_MAX,
                locked_memory_bytes: 64 << 10,
                file_size_bytes: Some(limits::ENGINE_FILE_BYTES_MAX),
            },
            calls: calls_of(command.accelerator),
            program: command.program,
            arguments: command.arguments,
            environment: command.environment.into_iter().collect(),
            working_directory: slot.engine_run_directory.clone(),
            // Under pressure the host gives up a guest before it gives up the daemon.
            out_of_memory_adjustment: 500,
        })
    }

    /// The group still lets the engine in to what is there, and nobody but root changes names.
    fn close_directory(&self, slot: &Slot) -> Result<(), SlotError> {
        let what = "close the directory";
        let group = self.uid(slot.index);
        let path = &slot.run_directory;
        std::os::unix::fs::chown(path, Some(0), Some(group))
            .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o710)))
            .map_err(|error| step(slot.index, what)(Box::new(error)))
    }

    /// The engine's own messages go to a file in its run directory.
    fn open_log(&self, slot: &Slot) -> std::io::Result<OwnedFd> {
        let path = slot.run_directory.join(file_names::CONSOLE_LOG);
        let file = fs::OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&path)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        // A booting engine opens it once more, for the guest's console.
        let uid = self.uid(slot.index);
        std::os::unix::fs::fchown(&file, Some(uid), Some(uid))?;
        Ok(file.into())
    }
}

fn percent_of(weight: CpuWeight) -> u32 {
    match weight {
        CpuWeight::Starting => limits::BRING_UP_CPU_WEIGHT_PERCENT,
        CpuWeight::Running => 100,
    }
}

#[async_trait]
impl SlotProvider for HostSlots {
    async fn acquire(&self) -> Result<Slot, SlotError> {
        self.blocking(Inner::acquire).await
    }

    async fn reopen(&self, index: SlotIndex) -> Result<Slot, SlotError> {
        let find = move |inner: &Inner| {
            let slot = inner.slot(index);
            match is_directory(&slot.run_directory) {
                Ok(()) => Ok(slot),
                Err(error) => Err(step(index, "find the directory")(Box::new(error))),
            }
        };
        self.blocking(find).await
    }

    async fn launch(
        &self,
        slot: &Slot,
        command: EngineCommand,
    ) -> Result<EngineProcess, LaunchError> {
        let fail = |name: &str, source: Source| LaunchError::Step {
            step: name.to_owned(),
            source,
        };
        let inner = Arc::clone(&self.inner);
        let here = slot.clone();
        let prepared = tokio::task::spawn_blocking(move || {
            let spec = inner.jail_spec(&here, command)?;
            Ok::<_, Source>((spec, inner.open_log(&here)?))
        });
        let (spec, log) = prepared
            .await
            .map_err(|e| fail("prepare", Box::new(e)))?
            .map_err(|e| fail("prepare", e))?;
        let deadline = limits::ENGINE_START_DEADLINE;
        let identity = jail::launch(&self.inner.config.jail_program, &spec, log, deadline)
            .await
            .map_err(|e| fail("jail", Box::new(e)))?;
        Ok(EngineProcess {
            pid: identity.pid,
            start_time_ticks: identity.start_time_ticks,
        })
    }

    async fn limit_cpu(&self, index: SlotIndex, cpu: CpuMillis) -> Result<(), SlotError> {
        self.blocking(move |inner| inner.limit_cpu(index, cpu))
            .await
    }

    async fn weigh_cpu(&self, index: SlotIndex, weight: CpuWeight) -> Result<(), SlotError> {
        self.blocking(move |inner| inner.weigh_cpu(index, weight))
            .await
    }

    async fn close_directory(&self, slot: &Slot) -> Result<(), SlotError> {
        let slot = slot.clone();
        self.blocking(move |inner| inner.close_directory(&slot))
            .await
    }

    async fn release(&self, index: SlotIndex) -> Result<(), SlotError> {
        self.blocking(move |inner| inner.release(index)).await
    }

    async fn list(&self) -> Result<Vec<SlotIndex>, SlotError> {
        self.blocking(Inner::list).await
    }
}

const fn calls_of(accelerator: Accelerator) -> JailCalls {
    match accelerator {
        Accelerator::Kvm => JailCalls::KvmEngine,
        Accelerator::Tcg => JailCalls::EmulatedEngine,
    }
}

fn is_directory(path: &Path) -> std::io::Result<()> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_dir() {
        Ok(())
    } else {
        Err(std::io::ErrorKind::NotADirectory.into())
    }
}
