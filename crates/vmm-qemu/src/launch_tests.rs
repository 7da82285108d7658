use dayfly_types::{DiskMib, MemoryMib, Vcpus};
use dayfly_vmm::{BasePart, EngineView, SlotIndex};

use super::*;
use crate::version::EngineVersion;

fn config(accelerator: Accelerator) -> QemuConfig {
    QemuConfig {
        root: "/".into(),
        build: None,
        program: "/usr/bin/qemu-system-x86_64".into(),
        accelerator,
        version: EngineVersion {
            major: 10,
            minor: 0,
            micro: 2,
        },
        memory_library: "/usr/lib/dayfly/libdayfly_memory.so".into(),
    }
}

fn slot() -> Slot {
    Slot {
        index: SlotIndex(3),
        run_directory: "/var/lib/dayfly/slots/3/run".into(),
        engine_run_directory: "/run".into(),
        engine_view: EngineView::Jailed,
    }
}

fn machine_spec() -> MachineSpec {
    MachineSpec {
        memory: MemoryMib::new(512).unwrap(),
        vcpus: Vcpus::new(2).unwrap(),
        disk: DiskMib::new(1024).unwrap(),
        spare_disks: 2,
    }
}

fn disk_files() -> DiskFiles {
    DiskFiles {
        base: "/t/python/base.img".into(),
        base_parts: Vec::new(),
        sealed: vec!["/t/python/disk0.raw".into(), "/s/7/disk1.qcow2".into()],
        empty_layer: "/t/python/empty.qcow2".into(),
    }
}

fn write(accelerator: Accelerator, origin: Origin<'_>) -> EngineCommand {
    write_in(&slot(), accelerator, origin)
}

fn write_in(slot: &Slot, accelerator: Accelerator, origin: Origin<'_>) -> EngineCommand {
    let launch = Launch {
        config: &config(accelerator),
        slot,
        machine: &machine_spec(),
        disks: &disk_files(),
        volumes: &[],
        origin,
    };
    command(&launch, Mounts::new(slot))
}

const BOOT: fn() -> Origin<'static> = || Origin::Boot {
    kernel: Path::new("/t/python/kernel"),
    initial_ram_disk: Path::new("/t/python/initrd"),
    memory: BootMemory::Image,
    counter_khz: Some(2_500_000),
};
const BOOT_PRIVATELY: fn() -> Origin<'static> = || Origin::Boot {
    kernel: Path::new("/t/python/kernel"),
    initial_ram_disk: Path::new("/t/python/initrd"),
    memory: BootMemory::Private,
    counter_khz: None,
};
const RESTORE: fn() -> Origin<'static> = || Origin::Restore {
    memory_image: Path::new("/t/python/memory.img"),
};

fn devices(command: &EngineCommand) -> Vec<&str> {
    let pairs = command.arguments.windows(2);
    pairs
        .filter(|pair| pair[0] == "-device")
        .map(|pair| pair[1].as_str())
        .collect()
}

#[test]
fn boot_and_restore_describe_the_same_devices() {
    let boot = write(Accelerator::Tcg, BOOT());
    let restore = write(Accelerator::Tcg, RESTORE());
    let private = write(Accelerator::Tcg, BOOT_PRIVATELY());
    assert_eq!(devices(&boot), devices(&restore));
    assert_eq!(devices(&private), devices(&restore));
    assert_eq!(devices(&boot).len(), 9);
}

#[test]
fn a_restore_maps_memory_privately_and_a_boot_shares_it() {
    let boot = write(Accelerator::Tcg, BOOT()).arguments.join(" ");
    assert!(boot.contains(r#""mem-path":"/run/memory.img","qom-type":"memory-backend-file","#));
    assert!(boot.contains(r#""share":true"#));
    let restore = write(Accelerator::Tcg, RESTORE()).arguments.join(" ");
    assert!(restore.contains(r#""readonly":true,"rom":"off","share":false"#));
    let private = write(Accelerator::Tcg, BOOT_PRIVATELY())
        .arguments
        .join(" ");
    let memory = r#""mem-path":"/run/memory.img","qom-type":"memory-backend-file","readonly":true,"rom":"off","share":false"#;
    assert!(
        private.contains(memory) && private.contains("-kernel"),
        "{private}"
    );
    assert!(restore.contains("-incoming defer -S"));
    assert!(!restore.contains("-kernel"));
}

#[test]
fn a_guest_of_a_user_cannot_fill_the_host_through_its_console() {
    let kept =
        "-chardev ringbuf,id=console,size=16384 -action shutdown=pause -serial chardev:console";
    for origin in [RESTORE(), BOOT_PRIVATELY()] {
        let line = write(Accelerator::Tcg, origin).arguments.join(" ");
        assert!(line.contains(kept), "{line}");
        assert!(!line.contains(file_names::CONSOLE_LOG));
    }
}

#[test]
fn each_directory_is_mounted_once_and_files_keep_their_names() {
    let boot = write(Accelerator::Tcg, BOOT());
    let pairs: Vec<_> = boot
        .mounts
        .iter()
        .map(|m| (m.host.as_path(), m.target.as_path()))
        .collect();
    let expected = [("/t/python", "/template"), ("/s/7", "/template-1")];
    assert_eq!(
        pairs,
        expected.map(|(host, target)| (Path::new(host), Path::new(target)))
    );
    let line = boot.arguments.join(" ");
    assert!(line.contains("-kernel /template/kernel -initrd /template/initrd"));
    assert!(line.contains(r#""filename":"/template-1/disk1.qcow2""#));
    assert!(!line.contains("/t/python"), "{line}");
}

#[test]
fn sealed_layers_stack_under_the_writable_disk() {
    let line = write(Accelerator::Tcg, RESTORE()).arguments.join(" ");
    let lowest = r#""filename":"/template/disk0.raw","read-only":true},"node-name":"sealed0""#;
    assert!(line.contains(lowest), "{line}");
    assert!(
        line.contains(r#"{"backing":"sealed0","driver":"qcow2""#),
        "{line}"
    );
    assert!(
        line.contains(r#"{"backing":"sealed1","discard":"unmap","driver":"qcow2""#),
        "{line}"
    );
}

#[test]
fn parts_of_a_base_are_one_disk_and_only_maps_are_understood() {
    let mut disks = disk_files();
    disks.base_parts = ["base-0", "base"]
        .map(|name| BasePart {
            content: format!("/t/python/{name}.img").into(),
            map: format!("/t/python/{name}.map").into(),
        })
        .to_vec();
    let slot = slot();
    let launch = Launch {
        config: &config(Accelerator::Tcg),
        slot: &slot,
        machine: &machine_spec(),
        disks: &disks,
        volumes: &[],
        origin: RESTORE(),
    };
    let command = command(&launch, Mounts::new(&slot));
    let line = command.arguments.join(" ");
    for part in [
        r#"{"backing":null,"data-file":{"driver":"file","drop-cache":false,"filename":"/template/base-0.img","read-only":true},"driver":"qcow2","file":{"driver":"file","drop-cache":false,"filename":"/template/base-0.map","read-only":true},"node-name":"base0","read-only":true}"#,
        r#"{"backing":"base0","data-file":{"driver":"file","drop-cache":false,"filename":"/template/base.img","read-only":true},"driver":"qcow2","file":{"driver":"file","drop-cache":false,"filename":"/template/base.map","read-only":true},"node-name":"base","read-only":true}"#,
    ] {
        assert!(line.contains(part), "{line}");
    }
    // One file is read as it is.
    let whole = write(Accelerator::Tcg, RESTORE()).arguments.join(" ");
    let base = r#"{"driver":"raw","file":{"driver":"file","drop-cache":false,"filename":"/template/base.img","read-only":true},"node-name":"base","read-only":true}"#;
    assert!(whole.contains(base), "{whole}");
}

#[test]
fn only_hardware_virtualisation_gets_its_device_node() {
    let emulated = write(Accelerator::Tcg, RESTORE());
    assert_eq!(emulated.devices, [PathBuf::from("/dev/net/tun")]);
    let hardware = write(Accelerator::Kvm, RESTORE());
    let both = ["/dev/kvm", "/dev/net/tun"].map(PathBuf::from);
    assert_eq!(hardware.devices, both);
    assert!(
        hardware
            .arguments
            .join(" ")
            .contains("-accel kvm -cpu host")
    );
}

#[test]
fn a_jailed_engine_is_attached_to_its_tap_and_a_bare_one_to_nothing() {
    let line = write(Accelerator::Tcg, RESTORE()).arguments.join(" ");
    let uplink = "-netdev tap,id=uplink,ifname=tap0,script=no,downscript=no,vhost=off,vnet_hdr=off";
    assert!(line.contains(uplink), "{line}");
    let device = "virtio-net-device,id=network,netdev=uplink,mac=02:df:00:00:00:01,csum=off,";
    assert!(line.contains(device), "{line}");
    let bare = Slot {
        engine_view: EngineView::Bare,
        ..slot()
    };
    let command = write_in(&bare, Accelerator::Tcg, BOOT());
    assert!(command.devices.is_empty());
    let line = command.arguments.join(" ");
    assert!(!line.contains("uplink"), "{line}");
    assert!(line.contains("virtio-net-device,id=network,mac=02:df:00:00:00:01,csum=off,"));
}

#[test]
fn an_emulated_kernel_is_told_to_trust_its_counter() {
    let emulated = write(Accelerator::Tcg, BOOT()).arguments.join(" ");
    assert!(emulated.contains("tsc=reliable tsc_early_khz=2500000"));
    assert!(
        !write(Accelerator::Kvm, BOOT())
            .arguments
            .join(" ")
            .contains("tsc")
    );
}

#[test]
fn a_comma_in_a_path_starts_no_option() {
    assert_eq!(escaped(Path::new("/a,b")), "/a,,b");
}

#[test]
fn every_machine_but_one_whose_memory_becomes_an_image_loads_the_library() {
    assert!(write(Accelerator::Tcg, BOOT()).environment.is_empty());
    for origin in [RESTORE(), BOOT_PRIVATELY()] {
        let names: Vec<_> = write(Accelerator::Tcg, origin)
            .environment
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            names,
            [
                "LD_PRELOAD=/usr/lib/dayfly/libdayfly_memory.so",
                "DAYFLY_MEMORY_MAP=/run/memory.map",
                "DAYFLY_MEMORY_SOCKET=/run/memory.sock"
            ]
        );
    }
}
