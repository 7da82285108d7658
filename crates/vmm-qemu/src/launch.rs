//! The command line of an engine process.
//!
//! A boot and a restore must describe the same devices in the same order: the device state names
//! them by that order. So one function writes both, and they differ only in where memory comes
//! from, whether there is a kernel, and where the console goes.

use std::path::{Path, PathBuf};

use dayfly_types::limits::{CONSOLE_RING_BYTES, ENGINE_OVERHEAD_MIB};
use dayfly_vmm::{
    Accelerator, BootMemory, DiskFiles, EngineCommand, EngineMount, MachineSpec, Slot, SlotLimits,
    VolumeFile, file_names,
};
use serde_json::{Value, json};

use crate::capabilities::processor_model;
use crate::driver::QemuConfig;
use crate::layout::{
    MEMORY_MAP, MEMORY_MAP_VARIABLE, MEMORY_SOCKET, MEMORY_SOCKET_VARIABLE, spare_disk_name,
};
use crate::network;
use crate::qmp::WRITABLE_NODE;

/// What the engine calls the guest's console.
pub(crate) const CONSOLE: &str = "console";
/// Kernel arguments. A panic or a reboot ends the guest, since `-no-reboot` is set.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 reboot=t random.trust_cpu=on";

/// Found in the engine's data directory. Boots faster than the default firmware, which also
/// initialises what this machine does not have.
const FIRMWARE: &str = "qboot.rom";

/// The buffer is touched only as it fills, so a parked engine costs the same with any size. A
/// session with Python and a few shell tools fills 64 MiB twice over, and each time all of it is
/// translated anew.
const TRANSLATION_BUFFER_MIB: u64 = 128;
const _: () = assert!(TRANSLATION_BUFFER_MIB <= ENGINE_OVERHEAD_MIB / 2);

/// What a hostile guest may not do once it has taken over the process.
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// What the engine calls the read-only disk.
const BASE_NODE: &str = "base";

/// Names of the agent's ports, by which the guest finds them.
const CONTROL_PORT: &str = "dayfly.control";
const BULK_PORT: &str = "dayfly.bulk";

/// How a machine comes to life.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin<'a> {
    Boot {
        kernel: &'a Path,
        initial_ram_disk: &'a Path,
        memory: BootMemory,
        /// See [`crate::counter`].
        counter_khz: Option<u64>,
    },
    Restore {
        memory_image: &'a Path,
    },
}

/// What a command line is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch<'a> {
    pub(crate) config: &'a QemuConfig,
    pub(crate) slot: &'a Slot,
    pub(crate) machine: &'a MachineSpec,
    pub(crate) disks: &'a DiskFiles,
    pub(crate) volumes: &'a [VolumeFile],
    pub(crate) origin: Origin<'a>,
}

/// The host directories an engine reads, and what it calls the files in them.
#[derive(Debug)]
pub(crate) struct Mounts {
    slot: Slot,
    mounts: Vec<EngineMount>,
}

impl Mounts {
    pub(crate) fn new(slot: &Slot) -> Self {
        Self {
            slot: slot.clone(),
            mounts: Vec::new(),
        }
    }

    /// Covers `host` by a mount of its directory, and gives the path that the engine opens. The
    /// run directory needs none.
    pub(crate) fn engine_path(&mut self, host: &Path) -> PathBuf {
        let directory = host.parent().unwrap_or(Path::new("/"));
        let name = host.file_name().unwrap_or_default();
        if directory == self.slot.run_directory {
            return self.slot.engine_run_directory.join(name);
        }
        let position = self.mounts.iter().position(|mount| mount.host == directory);
        let position = position.unwrap_or_else(|| {
            let target = match self.mounts.len() {
                0 => PathBuf::from("/template"),
                count => PathBuf::from(format!("/template-{count}")),
            };
            self.mounts.push(EngineMount {
                host: directory.to_owned(),
                target,
            });
            self.mounts.len() - 1
        });
        let view = self.slot.engine_view;
        self.mounts[position].engine_path(view).join(name)
    }

    pub(crate) fn into_inner(self) -> Vec<EngineMount> {
        self.mounts
    }
}

/// Writes the command. The mounts may already hold directories that only later steps need.
pub(crate) fn command(launch: &Launch<'_>, mut mounts: Mounts) -> EngineCommand {
    let mut arguments = Arguments::default();
    machine(&mut arguments, launch);
    origin(&mut arguments, launch, &mut mounts);
    disks(&mut arguments, launch, &mut mounts);
    network_and_randomness(&mut arguments, launch.slot);
    agent_ports(&mut arguments, launch.slot);
    console(&mut arguments, launch);
    monitors(&mut arguments, launch.slot);
    arguments.add("-sandbox", SANDBOX);
    let accelerator_device = match launch.config.accelerator {
        Accelerator::Kvm => Some("/dev/kvm"),
        Accelerator::Tcg => None,
    };
    let devices = accelerator_device
        .into_iter()
        .chain(network::device_node(launch.slot));
    EngineCommand {
        root: launch.config.root.clone(),
        program: launch.config.program.clone(),
        arguments: arguments.0,
        mounts: mounts.into_inner(),
        environment: environment(launch),
        devices: devices.map(PathBuf::from).collect(),
        limits: SlotLimits {
            memory: launch.machine.memory,
            vcpus: launch.machine.vcpus,
        },
        accelerator: launch.config.accelerator,
    }
}

/// Memory layers are mapped by a library that is loaded before the engine's own, which also has
/// the kernel ready to note what the guest writes, and gives back what the guest has freed. A machine
/// whose memory becomes an image needs none of that, and maps it shared.
fn environment(launch: &Launch<'_>) -> Vec<(String, String)> {
    let becomes_image = matches!(
        launch.origin,
        Origin::Boot {
            memory: BootMemory::Image,
            ..
        }
    );
    if becomes_image {
        return Vec::new();
    }
    let run_directory = &launch.slot.engine_run_directory;
    let (map, socket) = (
        run_directory.join(MEMORY_MAP),
        run_directory.join(MEMORY_SOCKET),
    );
    vec![
        ("LD_PRELOAD".to_owned(), text(&launch.config.memory_library)),
        (MEMORY_MAP_VARIABLE.to_owned(), text(&map)),
        (MEMORY_SOCKET_VARIABLE.to_owned(), text(&socket)),
    ]
}

#[derive(Debug, Default)]
struct Arguments(Vec<String>);

impl Arguments {
    fn flag(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }

    fn add(&mut self, name: &str, value: impl Into<String>) {
        self.0.push(name.to_owned());
        self.0.push(value.into());
    }

    /// A value in JSON needs no escaping of commas in paths.
    fn add_json(&mut self, name: &str, value: &Value) {
        self.add(name, value.to_string());
    }
}

fn machine(arguments: &mut Arguments, launch: &Launch<'_>) {
    for flag in ["-nodefaults", "-no-user-config", "-nographic", "-no-reboot"] {
        arguments.flag(flag);
    }
    // Without ACPI the distribution's kernel does not find the devices of this machine.
    arguments.add("-M", "microvm,acpi=on,memory-backend=memory");
    let accelerator = launch.config.accelerator;
    arguments.add("-accel", accelerator_option(accelerator));
    arguments.add("-cpu", processor_model(accelerator));
    arguments.add("-m", format!("{}M", launch.machine.memory.get()));
    arguments.add("-smp", format!("cpus={}", launch.machine.vcpus.get()));
    arguments.add("-bios", FIRMWARE);
    // Device state is saved without memory by a command that writes no configuration section, so
    // a load must not expect one. What the section would tell, a manifest tells.
    arguments.add("-global", "migration.send-configuration=off");
}

pub(crate) fn accelerator_option(accelerator: Accelerator) -> String {
    match accelerator {
        Accelerator::Kvm => "kvm".to_owned(),
        Accelerator::Tcg => format!("tcg,tb-size={TRANSLATION_BUFFER_MIB}"),
    }
}

fn origin(arguments: &mut Arguments, launch: &Launch<'_>, mounts: &mut Mounts) {
    let size = launch.machine.memory.bytes();
    match launch.origin {
        Origin::Boot {
            kernel,
            initial_ram_disk,
            memory,
            counter_khz,
        } => {
            let image = launch
                .slot
                .engine_run_directory
                .join(file_names::MEMORY_IMAGE);
            let memory = match memory {
                BootMemory::Image => json!({
                    "qom-type": "memory-backend-file", "id": "memory", "size": size,
                    "mem-path": image, "share": true,
                }),
                BootMemory::Private => private_memory(size, &image),
            };
            arguments.add_json("-object", &memory);
            let initial_ram_disk = mounts.engine_path(initial_ram_disk);
            arguments.add("-kernel", text(&mounts.engine_path(kernel)));
            arguments.add("-initrd", text(&initial_ram_disk));
            arguments.add(
                "-append",
                kernel_arguments(launch.config.accelerator, counter_khz),
            );
        }
        Origin::Restore { memory_image } => {
            let memory = private_memory(size, &mounts.engine_path(memory_image));
            arguments.add_json("-object", &memory);
            // The kernel is in the memory image. `-S` holds the machine after its state is loaded,
            // whatever state it was captured in, so that one command starts it.
            arguments.add("-incoming", "defer");
            arguments.flag("-S");
        }
    }
}

/// Opened read-only and mapped privately: the guest's writes stay in this process.
fn private_memory(size: u64, image: &Path) -> Value {
    json!({
        "qom-type": "memory-backend-file", "id": "memory", "size": size,
        "mem-path": image, "share": false, "readonly": true, "rom": "off",
    })
}

/// Under KVM the kernel asks the hypervisor for the time. Under emulation its only clock is the
/// time stamp counter, whose rate it cannot measure on a busy host ([`crate::counter`]), and which
/// it would there also find wanting: it compares it with ticks, and on a busy host ticks get lost.
pub(crate) fn kernel_arguments(accelerator: Accelerator, counter_khz: Option<u64>) -> String {
    match (accelerator, counter_khz) {
        (Accelerator::Kvm, _) => KERNEL_ARGUMENTS.to_owned(),
        (Accelerator::Tcg, None) => format!("{KERNEL_ARGUMENTS} tsc=reliable"),
        (Accelerator::Tcg, Some(khz)) => {
            format!("{KERNEL_ARGUMENTS} tsc=reliable tsc_early_khz={khz}")
        }
    }
}

fn disks(arguments: &mut Arguments, launch: &Launch<'_>, mounts: &mut Mounts) {
    let run_directory = &launch.slot.engine_run_directory;
    base(arguments, launch.disks, mounts);
    let mut below: Option<String> = None;
    for (index, layer) in launch.disks.sealed.iter().enumerate() {
        let node = format!("sealed{index}");
        let format = if index == 0 { "raw" } else { "qcow2" };
        let backing = (index > 0).then_some(below.as_deref());
        arguments.add_json(
            "-blockdev",
            &shared_layer(&node, format, layer, backing, mounts),
        );
        below = Some(node);
    }
    arguments.add_json(
        "-blockdev",
        &json!({
            "driver": "qcow2", "node-name": WRITABLE_NODE, "backing": below, "discard": "unmap",
            "file": writable_file(&run_directory.join(file_names::WRITABLE_DISK)),
        }),
    );
    for index in 0..launch.machine.spare_disks {
        let volume = launch.volumes.iter().find(|volume| volume.spare == index);
        let read_only = volume.is_some_and(|volume| volume.read_only);
        arguments.add_json(
            "-blockdev",
            &json!({
                "driver": "raw", "node-name": format!("spare{index}"), "read-only": read_only,
                "file": file(&run_directory.join(spare_disk_name(index)), read_only),
            }),
        );
    }
    // The guest finds its disks by serial, never by order.
    for node in disk_nodes(launch.machine.spare_disks) {
        let serial = if node == WRITABLE_NODE { "rw" } else { &node };
        arguments.add("-device", disk_device(&node, serial));
    }
}

/// The nodes that the guest has as disks, in their order.
pub(crate) fn disk_nodes(spare_disks: u8) -> impl Iterator<Item = String> {
    let spare = (0..spare_disks).map(|index| format!("spare{index}"));
    [BASE_NODE, WRITABLE_NODE]
        .into_iter()
        .map(str::to_owned)
        .chain(spare)
}

/// What the engine calls the disk that it makes of a node.
pub(crate) fn disk_id(node: &str) -> String {
    format!("disk-{node}")
}

/// The read-only disk. The parts of one lie over each other: the map of each says what is its own,
/// so that no content of a part is ever read as anything but the guest's bytes.
fn base(arguments: &mut Arguments, disks: &DiskFiles, mounts: &mut Mounts) {
    let Some((highest, lower)) = disks.base_parts.split_last() else {
        let layer = shared_layer(BASE_NODE, "raw", &disks.base, None, mounts);
        arguments.add_json("-blockdev", &layer);
        return;
    };
    let mut below: Option<String> = None;
    let lower = lower.iter().enumerate();
    let named = lower.map(|(index, part)| (format!("{BASE_NODE}{index}"), part));
    for (node, part) in named.chain([(BASE_NODE.to_owned(), highest)]) {
        let mut layer = shared_layer(&node, "qcow2", &part.map, Some(below.as_deref()), mounts);
        layer["data-file"] = file(&mounts.engine_path(&part.content), true);
        arguments.add_json("-blockdev", &layer);
        below = Some(node);
    }
}

/// A write for which the host has no room waits, with the whole machine, until somebody lets it try
/// again: a guest that was told of it would give its file system up for good. Of other errors the
/// guest is told, since waiting would not mend them.
fn disk_device(node: &str, serial: &str) -> String {
    let errors = "werror=enospc,rerror=report";
    let id = disk_id(node);
    format!("virtio-blk-device,id={id},drive={node},serial={serial},{errors}")
}

/// What a disk is made of. Where a machine is restored the engine would throw the host's pages of each
/// file away, as if another host had written to it; those of a template are everybody's.
fn file(path: &Path, read_only: bool) -> Value {
    json!({ "driver": "file", "drop-cache": false, "filename": path, "read-only": read_only })
}

/// The file of a layer that the guest writes to. What it discards is given back to the host. That it can
/// be written to is not said: it is opened anew for readers alone once its layer is sealed.
pub(crate) fn writable_file(path: &Path) -> Value {
    json!({ "driver": "file", "discard": "unmap", "drop-cache": false, "filename": path })
}

/// A layer that many engines read at once. `backing` is absent for a format that has none, and
/// null where the file's own idea of its backing must not count.
fn shared_layer(
    node: &str,
    format: &str,
    path: &Path,
    backing: Option<Option<&str>>,
    mounts: &mut Mounts,
) -> Value {
    let mut layer = json!({
        "driver": format, "node-name": node, "read-only": true,
        "file": file(&mounts.engine_path(path), true),
    });
    if let Some(backing) = backing {
        layer["backing"] = json!(backing);
    }
    layer
}

fn network_and_randomness(arguments: &mut Arguments, slot: &Slot) {
    if let Some(uplink) = network::uplink(slot) {
        arguments.add("-netdev", uplink);
    }
    arguments.add("-device", network::device(slot));
    arguments.add("-object", "rng-builtin,id=randomness");
    arguments.add("-device", "virtio-rng-device,rng=randomness");
}

fn agent_ports(arguments: &mut Arguments, slot: &Slot) {
    arguments.add("-device", "virtio-serial-device,max_ports=4");
    let ports = [
        (1, "control", file_names::CONTROL_SOCKET, CONTROL_PORT),
        (2, "bulk", file_names::BULK_SOCKET, BULK_PORT),
    ];
    for (number, id, socket, name) in ports {
        arguments.add(
            "-chardev",
            listening_socket(id, &slot.engine_run_directory.join(socket)),
        );
        arguments.add(
            "-device",
            format!("virtserialport,chardev={id},name={name},nr={number}"),
        );
    }
}

fn console(arguments: &mut Arguments, launch: &Launch<'_>) {
    match launch.origin {
        // Only the operator's recipe runs then, and only for as long as a bake takes.
        Origin::Boot {
            memory: BootMemory::Image,
            ..
        } => {
            let log = launch
                .slot
                .engine_run_directory
                .join(file_names::CONSOLE_LOG);
            arguments.add(
                "-chardev",
                format!("file,id={CONSOLE},append=on,path={}", escaped(&log)),
            );
        }
        // The guest decides how much it writes here, so only the last of it is kept, in memory. The
        // engine waits with its end until somebody has read that, or kills it.
        Origin::Boot {
            memory: BootMemory::Private,
            ..
        }
        | Origin::Restore { .. } => {
            arguments.add(
                "-chardev",
                format!("ringbuf,id={CONSOLE},size={CONSOLE_RING_BYTES}"),
            );
            arguments.add("-action", "shutdown=pause");
        }
    }
    arguments.add("-serial", format!("chardev:{CONSOLE}"));
}

fn monitors(arguments: &mut Arguments, slot: &Slot) {
    let sockets = [
        ("monitor", file_names::MONITOR_SOCKET),
        ("events", file_names::EVENTS_SOCKET),
    ];
    for (id, name) in sockets {
        let socket = slot.engine_run_directory.join(name);
        arguments.add("-chardev", listening_socket(id, &socket));
        arguments.add("-mon", format!("chardev={id},mode=control"));
    }
}

fn listening_socket(id: &str, path: &Path) -> String {
    format!("socket,id={id},server=on,wait=off,path={}", escaped(path))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A path as the value of an option, where a comma would start the next one.
fn escaped(path: &Path) -> String {
    text(path).replace(',', ",,")
}

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
