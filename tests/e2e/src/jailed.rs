//! The jail of an engine, as the documentation describes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dayfly_host::jail::{BindMount, JailCalls, JailSpec, MountAccess, ResourceLimits};
use dayfly_host::{Cgroup, CgroupTree, ProcessIdentity};
use dayfly_types::limits;
use serde_json::Value;

use crate::Daemon;
use crate::engine::record;

fn json(path: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

/// The root of the build that the node started with.
fn installed_root(store: &Path) -> Result<PathBuf> {
    let build = std::fs::read_to_string(store.join("installed"))?;
    Ok(store.join(build))
}

/// The engine of a sandbox, and where what it sees comes from.
#[derive(Debug, Clone)]
pub struct Engine {
    pub identity: ProcessIdentity,
    pub slot: u64,
    pub template: PathBuf,
}

/// What the node has written down about the engine of a sandbox.
///
/// # Errors
/// When the sandbox has none.
pub fn engine(daemon: &Daemon, id: &str) -> Result<Engine> {
    let record = record(daemon, id)?;
    let process = &record["process"];
    let version = record["template_version"].as_str().context("no version")?;
    Ok(Engine {
        identity: ProcessIdentity {
            pid: i32::try_from(process["pid"].as_i64().context("no pid")?)?,
            start_time_ticks: process["start_time_ticks"].as_u64().context("no start")?,
        },
        slot: record["slot"].as_u64().context("no slot")?,
        template: daemon.path().join("node/templates/base").join(version),
    })
}

fn instance(daemon: &Daemon) -> Result<Value> {
    json(&daemon.path().join("instance.json"))
}

/// The first user of the daemon's own: control's. Those of slots follow.
///
/// # Errors
/// When the daemon has written none down.
pub fn first_uid(daemon: &Daemon) -> Result<u32> {
    let first = instance(daemon)?["first_uid"].as_u64();
    Ok(u32::try_from(first.context("no first_uid")?)?)
}

/// The control group of an engine.
///
/// # Errors
/// When there is none.
pub fn control_group(daemon: &Daemon, engine: &Engine) -> Result<Cgroup> {
    let instance = instance(daemon)?;
    let tree = CgroupTree::find(instance["instance"].as_str().context("no instance")?)?;
    Ok(tree.open_existing(&engine.slot.to_string())?)
}

/// By it the engine has attached to the tap of its slot.
pub const TUN: &str = "/dev/net/tun";
/// By it the engine has the processor run its guest.
pub const KVM: &str = "/dev/kvm";

/// Whether engines of this daemon run their guests on KVM, as the node has written down. A host
/// without the device has nothing to write down.
///
/// # Errors
/// When what it has written cannot be read.
pub fn is_on_kvm(daemon: &Daemon) -> Result<bool> {
    let record = daemon.path().join("node/accelerator.json");
    Ok(record.exists() && json(&record)?["accelerator"] == "kvm")
}

/// Written down here from the documentation, and not taken from the code that makes the jail.
///
/// # Errors
/// When the daemon's directory is not as it should be.
pub fn spec(daemon: &Daemon, engine: &Engine) -> Result<JailSpec> {
    let uid = first_uid(daemon)? + 1 + u32::try_from(engine.slot)?;
    let slot = engine.slot.to_string();
    let mount = |source: PathBuf, target: &str, access| BindMount {
        source,
        target: PathBuf::from(target),
        access,
    };
    let node = daemon.path().join("node");
    let (devices, calls): (&[&str], _) = if is_on_kvm(daemon)? {
        (&[KVM, TUN], JailCalls::KvmEngine)
    } else {
        (&[TUN], JailCalls::EmulatedEngine)
    };
    Ok(JailSpec {
        uid,
        gid: uid,
        cgroup_procs: Vec::new(),
        netns: node.join("netns").join(&slot),
        hostname: "engine".to_owned(),
        root: installed_root(&node.join("engine-roots"))?,
        mounts: vec![
            mount(
                node.join("slots").join(&slot).join("run"),
                "/run",
                MountAccess::ReadWrite,
            ),
            mount(engine.template.clone(), "/template", MountAccess::ReadOnly),
        ],
        devices: devices.iter().map(PathBuf::from).collect(),
        limits: ResourceLimits {
            open_files: limits::ENGINE_OPEN_FILES_MAX,
            locked_memory_bytes: 64 << 10,
            file_size_bytes: Some(limits::ENGINE_FILE_BYTES_MAX),
        },
        calls,
        out_of_memory_adjustment: 500,
        program: PathBuf::from("/usr/bin/qemu-system-x86_64"),
        arguments: Vec::new(),
        environment: BTreeMap::new(),
        working_directory: PathBuf::from("/run"),
    })
}
