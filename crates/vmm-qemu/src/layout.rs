//! The files that a slot's run directory holds before its engine starts.
//!
//! What belongs to a template is mounted from where it lies. What belongs to a snapshot or is a
//! volume is linked into the run directory: the engine's user owns the directory but not those
//! files, so it can drop a name and cannot change a byte of a sealed one.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use dayfly_types::DiskMib;
use dayfly_vmm::{
    BootMemory, BootSpec, DiskFiles, EngineView, MemoryImage, MemoryLayer, RestoreSpec, Slot,
    VolumeFile, file_names,
};

use crate::error::LayoutError;

/// Large enough to be a disk, small enough to cost nothing until a volume takes its place.
const SPARE_DISK_BYTES: u64 = 4096;
/// What the memory library reads.
pub(crate) const MEMORY_MAP: &str = "memory.map";
pub(crate) const MEMORY_MAP_VARIABLE: &str = "DAYFLY_MEMORY_MAP";
/// Where the memory library takes orders.
pub(crate) const MEMORY_SOCKET: &str = "memory.sock";
pub(crate) const MEMORY_SOCKET_VARIABLE: &str = "DAYFLY_MEMORY_SOCKET";
const MEMORY_MAP_HEADER: &str = "dayfly-memory-map 1";
/// A snapshot's device state; the name of a capture's own is another.
const RESTORED_STATE: &str = "restored.state";

pub(crate) fn spare_disk_name(index: u8) -> String {
    format!("spare{index}.img")
}

fn memory_layer_name(index: usize) -> String {
    format!("memory-{index}.layer")
}

/// Whether a file that an engine maps is guest memory.
pub(crate) fn is_guest_memory(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_layer = name.starts_with("memory") && name.ends_with(".layer");
    name == file_names::MEMORY_IMAGE || is_layer
}

/// What to lay out.
#[derive(Debug)]
pub(crate) struct Layout {
    empty_layer: PathBuf,
    /// The size of the writable disk, when it is another than the empty layer's.
    disk: Option<DiskMib>,
    /// Spare disks to make.
    spares: Vec<u8>,
    /// Files of snapshots and volumes, and their names in the run directory.
    links: Vec<(PathBuf, String)>,
    /// Linked files that the engine may write.
    handed_over: Vec<String>,
    memory_map: Option<String>,
    /// How much memory lies on no file of a template.
    zeros_bytes: Option<u64>,
}

impl Layout {
    /// The layout, and the same machine with linked files in the place of the originals.
    pub(crate) fn of_boot(slot: &Slot, spec: &BootSpec) -> (BootSpec, Self) {
        let mut spec = spec.clone();
        let mut links = Links::new(slot, &spec.kernel);
        links.place_disks(&mut spec.disks, &mut spec.volumes);
        let zeros_bytes = match spec.memory {
            BootMemory::Image => None,
            BootMemory::Private => Some(spec.machine.memory.bytes()),
        };
        let memory_map = zeros_bytes.map(|bytes| memory_map(slot, bytes, &[]));
        let layout = Self {
            empty_layer: spec.disks.empty_layer.clone(),
            disk: spec.disk,
            spares: spares(spec.machine.spare_disks, &spec.volumes),
            links: links.made,
            handed_over: handed_over(&spec.volumes),
            memory_map,
            zeros_bytes,
        };
        (spec, layout)
    }

    /// The same of a machine that is restored.
    pub(crate) fn of_restore(slot: &Slot, spec: &RestoreSpec) -> (RestoreSpec, Self) {
        let mut spec = spec.clone();
        let mut links = Links::new(slot, &spec.kernel);
        links.place_disks(&mut spec.disks, &mut spec.volumes);
        for (index, layer) in spec.memory_layers.iter_mut().enumerate() {
            links.place(&mut layer.file, memory_layer_name(index));
        }
        links.place(&mut spec.device_state, RESTORED_STATE.to_owned());
        let memory_bytes = spec.machine.memory.bytes();
        let layout = Self {
            empty_layer: spec.disks.empty_layer.clone(),
            disk: spec.disk,
            spares: spares(spec.machine.spare_disks, &spec.volumes),
            links: links.made,
            handed_over: handed_over(&spec.volumes),
            memory_map: Some(memory_map(slot, memory_bytes, &spec.memory_layers)),
            zeros_bytes: (spec.memory_image == MemoryImage::Zeros).then_some(memory_bytes),
        };
        (spec, layout)
    }
}

/// Where the image is that guest memory is mapped from.
pub(crate) fn memory_image(slot: &Slot, image: &MemoryImage) -> PathBuf {
    match image {
        MemoryImage::File(path) => path.clone(),
        MemoryImage::Zeros => slot.run_directory.join(file_names::MEMORY_IMAGE),
    }
}

fn spares(count: u8, volumes: &[VolumeFile]) -> Vec<u8> {
    (0..count)
        .filter(|index| volumes.iter().all(|volume| volume.spare != *index))
        .collect()
}

fn handed_over(volumes: &[VolumeFile]) -> Vec<String> {
    let writable = volumes.iter().filter(|volume| !volume.read_only);
    writable
        .map(|volume| spare_disk_name(volume.spare))
        .collect()
}

struct Links<'a> {
    slot: &'a Slot,
    template: Option<PathBuf>,
    made: Vec<(PathBuf, String)>,
}

impl<'a> Links<'a> {
    /// The template's files are where its kernel is.
    fn new(slot: &'a Slot, kernel: &Path) -> Self {
        Self {
            slot,
            template: kernel.parent().map(Path::to_owned),
            made: Vec::new(),
        }
    }

    fn place_disks(&mut self, disks: &mut DiskFiles, volumes: &mut [VolumeFile]) {
        for (index, layer) in disks.sealed.iter_mut().enumerate() {
            self.place(layer, format!("sealed-{index}.img"));
        }
        for volume in volumes {
            self.place(&mut volume.file, spare_disk_name(volume.spare));
        }
    }

    /// Leaves a template's file where it is, and gives any other a name in the run directory.
    fn place(&mut self, file: &mut PathBuf, name: String) {
        let is_seen = self.slot.engine_view == EngineView::Bare;
        if is_seen || file.parent() == self.template.as_deref() {
            return;
        }
        let here = self.slot.run_directory.join(&name);
        self.made.push((std::mem::replace(file, here), name));
    }
}

/// The text that the memory library is told what to map with.
fn memory_map(slot: &Slot, memory_bytes: u64, layers: &[MemoryLayer]) -> String {
    let mut text = format!("{MEMORY_MAP_HEADER}\nmemory {memory_bytes}\n");
    for layer in layers {
        let mut file = layer.file.clone();
        if let Ok(name) = layer.file.strip_prefix(&slot.run_directory) {
            file = slot.engine_run_directory.join(name);
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "layer {}", file.display());
        for extent in &layer.extents {
            let _ = writeln!(text, "{} {}", extent.first, extent.count);
        }
    }
    text
}

/// Lays a fresh writable disk and the rest into a run directory that nothing runs in yet. What is
/// made belongs to whom the directory belongs to.
pub(crate) async fn lay_out(run_directory: &Path, layout: Layout) -> Result<(), LayoutError> {
    let run_directory = run_directory.to_owned();
    let task = move || lay_out_blocking(&run_directory, &layout);
    tokio::task::spawn_blocking(task)
        .await
        .map_err(|_| LayoutError::Lost)?
}

fn lay_out_blocking(run_directory: &Path, layout: &Layout) -> Result<(), LayoutError> {
    let unmade = |path: &Path, source| LayoutError::Make {
        path: path.to_owned(),
        source,
    };
    make_layer(
        run_directory,
        file_names::WRITABLE_DISK,
        &layout.empty_layer,
    )?;
    if let Some(size) = layout.disk {
        let path = run_directory.join(file_names::WRITABLE_DISK);
        enlarge_empty(&path, size).map_err(|source| unmade(&path, source))?;
    }
    let owner = owner_of(run_directory)?;
    for index in &layout.spares {
        let path = run_directory.join(spare_disk_name(*index));
        owner
            .create(&path)
            .and_then(|file| file.set_len(SPARE_DISK_BYTES))
            .map_err(|source| unmade(&path, source))?;
    }
    for (file, name) in &layout.links {
        let path = run_directory.join(name);
        std::fs::hard_link(file, &path).map_err(|source| unmade(&path, source))?;
        if layout.handed_over.contains(name) {
            // Nobody else may open it from now on; who had it open before is dead.
            owner.take(&path).map_err(|source| unmade(&path, source))?;
        }
    }
    if let Some(bytes) = layout.zeros_bytes {
        let path = run_directory.join(file_names::MEMORY_IMAGE);
        make_zeros(&path, bytes).map_err(|source| unmade(&path, source))?;
    }
    if let Some(map) = &layout.memory_map {
        let path = run_directory.join(MEMORY_MAP);
        owner
            .create(&path)
            .and_then(|mut file| io::Write::write_all(&mut file, map.as_bytes()))
            .map_err(|source| unmade(&path, source))?;
    }
    Ok(())
}

/// Makes a file that reads as zeros and takes no room. The engine maps it and must not write to
/// it, so it is not the engine's.
fn make_zeros(path: &Path, bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.set_len(bytes)?;
    // Whatever the daemon's mask is: the engine is another user and has to read it.
    file.set_permissions(Permissions::from_mode(0o444))
}

/// Makes an empty file for the engine to write a state to, in the place of one that a failed
/// capture may have left.
pub(crate) fn make_state_file(path: &Path) -> Result<(), LayoutError> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let unmade = |source| LayoutError::Make {
        path: path.to_owned(),
        source,
    };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unmade(error)),
        Ok(()) | Err(_) => {}
    }
    owner_of(directory)?.create(path).map(drop).map_err(unmade)
}

/// Makes a disk layer with nothing in it.
pub(crate) fn make_layer(
    run_directory: &Path,
    name: &str,
    empty_layer: &Path,
) -> Result<(), LayoutError> {
    let owner = owner_of(run_directory)?;
    let mut empty = File::open(empty_layer).map_err(|source| LayoutError::Read {
        path: empty_layer.to_owned(),
        source,
    })?;
    let path = run_directory.join(name);
    let unmade = |source| LayoutError::Make {
        path: path.clone(),
        source,
    };
    let mut disk = owner.create(&path).map_err(unmade)?;
    io::copy(&mut empty, &mut disk).map_err(unmade)?;
    Ok(())
}

/// Gives a layer with nothing in it another size. The engine refuses to do this before the guest
/// runs, and the guest must never see a disk that is smaller than its file system.
///
/// In a qcow2 file without data the size is the header's, and a table of zeros that covers it.
fn enlarge_empty(path: &Path, size: DiskMib) -> io::Result<()> {
    const MAGIC: u32 = 0x5146_49fb;
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut header = [0; 48];
    file.read_exact_at(&mut header, 0)?;
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let (magic, cluster_bits) = (word(0), word(20));
    let table = u64::from(word(40)) << 32 | u64::from(word(44));
    let odd = || io::Error::new(io::ErrorKind::InvalidData, "not an empty layer");
    if magic != MAGIC || !(9..=21).contains(&cluster_bits) {
        return Err(odd());
    }
    let cluster = 1_u64 << cluster_bits;
    // Each entry of the first table covers a table of eight-byte entries, each of one cluster.
    let entries = size.bytes().div_ceil(cluster * (cluster / 8));
    if entries * 8 > cluster || table % cluster != 0 {
        return Err(odd());
    }
    let entries = u32::try_from(entries).map_err(|_| odd())?;
    let end = table + u64::from(entries) * 8;
    if file.metadata()?.len() < end {
        file.set_len(end)?;
    }
    file.write_all_at(&size.bytes().to_be_bytes(), 24)?;
    file.write_all_at(&entries.to_be_bytes(), 36)
}

fn owner_of(run_directory: &Path) -> Result<Owner, LayoutError> {
    Owner::of(run_directory).map_err(|source| LayoutError::Read {
        path: run_directory.to_owned(),
        source,
    })
}

#[derive(Debug, Clone, Copy)]
struct Owner {
    user: u32,
    group: u32,
}

impl Owner {
    fn of(directory: &Path) -> io::Result<Self> {
        let metadata = std::fs::symlink_metadata(directory)?;
        let (user, group) = (metadata.uid(), metadata.gid());
        // A directory that was closed is root's, and its group is the engine's, whose user has the
        // same number.
        let user = if user == 0 { group } else { user };
        Ok(Self { user, group })
    }

    /// Makes an existing file this owner's alone.
    fn take(self, path: &Path) -> io::Result<()> {
        std::os::unix::fs::lchown(path, Some(self.user), Some(self.group))?;
        std::fs::set_permissions(path, Permissions::from_mode(0o600))
    }

    /// Refuses a name that exists, so a planted link is never followed.
    fn create(self, path: &Path) -> io::Result<File> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let metadata = file.metadata()?;
        if (metadata.uid(), metadata.gid()) != (self.user, self.group) {
            fchown(&file, Some(self.user), Some(self.group))?;
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use dayfly_types::{MemoryMib, Vcpus};
    use dayfly_vmm::{DiskFiles, MachineSpec, PageRange, SlotIndex, VolumeFile};

    use super::*;

    fn slot(run: &Path) -> Slot {
        Slot {
            index: SlotIndex(0),
            run_directory: run.to_owned(),
            engine_run_directory: "/run".into(),
            engine_view: EngineView::Jailed,
        }
    }

    fn spec(template: &Path, capture: &Path) -> RestoreSpec {
        RestoreSpec {
            machine: MachineSpec {
                memory: MemoryMib::new(128).unwrap(),
                vcpus: Vcpus::new(1).unwrap(),
                disk: DiskMib::new(64).unwrap(),
                spare_disks: 2,
            },
            kernel: template.join("vmlinuz"),
            initial_ram_disk: template.join("initrd"),
            disks: DiskFiles {
                base: template.join("base.img"),
                base_parts: Vec::new(),
                sealed: vec![template.join("disk-0.raw"), capture.join("disk.layer")],
                empty_layer: template.join("empty.img"),
            },
            memory_image: MemoryImage::File(template.join("memory.img")),
            memory_layers: vec![MemoryLayer {
                file: capture.join("memory.layer"),
                extents: vec![PageRange { first: 3, count: 2 }],
            }],
            device_state: capture.join("device.state"),
            disk: None,
            build: None,
            volumes: vec![VolumeFile {
                spare: 1,
                file: capture.join("volume.img"),
                read_only: false,
            }],
        }
    }

    #[tokio::test]
    async fn a_layout_holds_a_fresh_disk_and_links_to_what_is_no_templates() {
        let directory = tempfile::tempdir().unwrap();
        let (template, capture) = (directory.path().join("t"), directory.path().join("c"));
        let run = directory.path().join("run");
        for made in [&template, &capture, &run] {
            std::fs::create_dir(made).unwrap();
        }
        std::fs::write(template.join("empty.img"), b"layer").unwrap();
        for name in ["disk.layer", "memory.layer", "device.state", "volume.img"] {
            std::fs::write(capture.join(name), name).unwrap();
        }
        let slot = slot(&run);
        let (moved, layout) = Layout::of_restore(&slot, &spec(&template, &capture));
        lay_out(&run, layout).await.unwrap();
        let read = |name: &str| std::fs::read(run.join(name)).unwrap();
        assert_eq!(read(file_names::WRITABLE_DISK), b"layer");
        assert_eq!(read("sealed-1.img"), b"disk.layer");
        assert_eq!(read("spare1.img"), b"volume.img");
        assert_eq!(read("spare0.img").len() as u64, SPARE_DISK_BYTES);
        assert_eq!(
            read(MEMORY_MAP),
            b"dayfly-memory-map 1\nmemory 134217728\nlayer /run/memory-0.layer\n3 2\n"
        );
        assert_eq!(moved.disks.sealed[0], template.join("disk-0.raw"));
        assert_eq!(moved.device_state, run.join(RESTORED_STATE));
    }

    #[tokio::test]
    async fn a_machine_that_lies_on_no_template_has_zeros_that_it_cannot_write() {
        let directory = tempfile::tempdir().unwrap();
        let (template, capture) = (directory.path().join("t"), directory.path().join("c"));
        for made in [&template, &capture] {
            std::fs::create_dir(made).unwrap();
        }
        std::fs::write(template.join("empty.img"), b"layer").unwrap();
        for name in ["disk.layer", "memory.layer", "device.state", "volume.img"] {
            std::fs::write(capture.join(name), name).unwrap();
        }
        let mut restore = spec(&template, &capture);
        restore.memory_image = MemoryImage::Zeros;
        let boot = BootSpec::with_disks_of(&restore);
        for is_boot in [true, false] {
            let run = directory.path().join(format!("run-{is_boot}"));
            std::fs::create_dir(&run).unwrap();
            let slot = slot(&run);
            let layout = if is_boot {
                let (moved, layout) = Layout::of_boot(&slot, &boot);
                assert_eq!(moved.disks.sealed[0], template.join("disk-0.raw"));
                assert_eq!(moved.disks.sealed[1], run.join("sealed-1.img"));
                layout
            } else {
                Layout::of_restore(&slot, &restore).1
            };
            lay_out(&run, layout).await.unwrap();
            let image = std::fs::metadata(memory_image(&slot, &MemoryImage::Zeros)).unwrap();
            assert_eq!((image.len(), image.blocks()), (128 << 20, 0));
            assert_eq!(image.permissions().mode() & 0o222, 0);
            assert!(run.join("spare1.img").exists() && run.join("spare0.img").exists());
        }
    }

    #[tokio::test]
    async fn a_planted_link_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let victim = directory.path().join("victim");
        std::fs::write(&victim, b"precious").unwrap();
        std::os::unix::fs::symlink(&victim, run.join(file_names::WRITABLE_DISK)).unwrap();
        let result = make_layer(&run, file_names::WRITABLE_DISK, &victim);
        assert!(matches!(result, Err(LayoutError::Make { .. })));
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    }

    /// The engine's own tool is the judge of what we wrote.
    #[tokio::test]
    async fn an_enlarged_layer_is_one_that_the_engine_understands() {
        let tool = Path::new("/usr/bin/qemu-img");
        if !tool.exists() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let layer = directory.path().join("layer");
        let small = DiskMib::new(2048).unwrap();
        crate::create_empty_layer(tool, &layer, small)
            .await
            .unwrap();
        enlarge_empty(&layer, DiskMib::new(9000).unwrap()).unwrap();
        let run = |command: &str| {
            let output = std::process::Command::new(tool)
                .args([command, "--output=json"])
                .arg(&layer)
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
        };
        assert_eq!(run("info")["virtual-size"], 9000_u64 << 20);
        let checked = run("check");
        assert_eq!(checked["check-errors"], 0);
        assert!(checked.get("leaks").is_none() && checked.get("corruptions").is_none());
        std::fs::write(&layer, b"something else").unwrap();
        assert!(enlarge_empty(&layer, small).is_err());
    }

    #[test]
    fn guest_memory_is_told_by_its_name() {
        assert!(is_guest_memory("/template/memory.img"));
        assert!(is_guest_memory("/run/memory-3.layer"));
        assert!(!is_guest_memory("/run/memory.map"));
        assert!(!is_guest_memory("/run/memory.sock"));
        assert!(!is_guest_memory("/usr/lib/x86_64-linux-gnu/libc.so.6"));
    }
}
