use super::*;
use dayfly_host::files::DiskSpace;
use dayfly_host::probe::{CgroupFacts, DeviceFacts, NftablesFacts};

const ENGINE: EngineVersion = EngineVersion {
    major: 10,
    minor: 0,
    micro: 2,
};

/// A host that nothing is wrong with.
#[derive(Debug, Clone)]
struct Host {
    facts: HostFacts,
    accelerator: Option<Accelerator>,
    engine: Option<EngineVersion>,
    situation: Situation,
}

fn fit() -> Host {
    let device = DeviceFacts {
        exists: true,
        opens: true,
    };
    let facts = HostFacts {
        is_root: true,
        kernel_release: "6.1.0-40-amd64".to_owned(),
        architecture: "x86_64".to_owned(),
        processors: 4,
        cgroup: CgroupFacts {
            version: None,
            problem: None,
        },
        nftables: NftablesFacts {
            program: None,
            works: true,
            problem: None,
        },
        reflink: None,
        tun: device.clone(),
        kvm: device,
        memory: None,
        disk: Some(DiskSpace {
            total_bytes: 100 << 30,
            available_bytes: 50 << 30,
        }),
        same_page_merging: Some(false),
        hyperthreading: Some(false),
        swap_devices: Some(Vec::new()),
        unmitigated_faults: Vec::new(),
        clock_is_synchronised: Some(true),
    };
    Host {
        facts,
        accelerator: Some(Accelerator::Kvm),
        engine: Some(ENGINE),
        situation: Situation {
            listen: Some("127.0.0.1:7070".parse().unwrap()),
            ..Situation::default()
        },
    }
}

/// What is found on a host that differs from a fit one in this.
fn found(change: impl FnOnce(&mut Host)) -> Vec<(&'static str, Severity)> {
    let mut host = fit();
    change(&mut host);
    let found = findings(&host.facts, host.accelerator, host.engine, &host.situation);
    for finding in &found {
        assert!(!finding.remedy.is_empty() && !finding.detail.is_empty());
    }
    let named = found.iter().map(|one| (one.name, one.severity));
    named.collect()
}

#[test]
fn nothing_is_found_on_a_host_that_is_fit() {
    assert!(found(|_| {}).is_empty());
    // What is not known is no finding.
    let unknown = found(|host| {
        host.facts.same_page_merging = None;
        host.facts.hyperthreading = None;
        host.facts.swap_devices = None;
        host.facts.clock_is_synchronised = None;
        host.facts.disk = None;
        host.situation.listen = None;
        host.engine = None;
    });
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn an_api_off_loopback_is_a_danger() {
    let danger = [("listener", Severity::Danger)];
    for address in [
        "0.0.0.0:7070",
        "10.0.0.5:7070",
        "[::]:7070",
        "[::ffff:10.0.0.5]:1",
    ] {
        let address = address.parse().unwrap();
        assert_eq!(found(|host| host.situation.listen = Some(address)), danger);
    }
    for address in ["127.8.0.1:1", "[::1]:7070", "[::ffff:127.0.0.1]:1"] {
        let address = address.parse().unwrap();
        assert!(found(|host| host.situation.listen = Some(address)).is_empty());
    }
}

#[test]
fn a_host_without_kvm_is_a_danger_and_shared_a_greater_one() {
    let emulated = found(|host| host.accelerator = Some(Accelerator::Tcg));
    assert_eq!(emulated, [("isolation", Severity::Danger)]);
    let unknown = found(|host| host.accelerator = None);
    assert_eq!(unknown, [("isolation", Severity::Warning)]);
    let shared = found(|host| {
        host.accelerator = Some(Accelerator::Tcg);
        host.situation.shares_emulation = true;
    });
    assert_eq!(shared.len(), 2);
    assert!(found(|host| host.situation.shares_emulation = true).is_empty());
}

#[test]
fn what_guests_can_learn_of_each_other_is_a_danger() {
    let merged = found(|host| host.facts.same_page_merging = Some(true));
    assert_eq!(merged, [("page merging", Severity::Danger)]);
    let shared = found(|host| host.facts.hyperthreading = Some(true));
    assert_eq!(shared, [("hyperthreading", Severity::Danger)]);
    let faulty = found(|host| host.facts.unmitigated_faults = vec!["gds".to_owned()]);
    assert_eq!(faulty, [("processor", Severity::Danger)]);
}

#[test]
fn swap_and_a_clock_that_nobody_keeps_are_told() {
    let swap = found(|host| host.facts.swap_devices = Some(vec!["/swap.img".to_owned()]));
    assert_eq!(swap, [("swap", Severity::Warning)]);
    let clock = found(|host| host.facts.clock_is_synchronised = Some(false));
    assert_eq!(clock, [("clock", Severity::Warning)]);
}

#[test]
fn a_disk_without_a_reserve_is_told() {
    let wanted = [("disk reserve", Severity::Warning)];
    assert_eq!(
        found(|host| host.situation.disk_reserve_mib = Some(0)),
        wanted
    );
    assert!(found(|host| host.situation.disk_reserve_mib = Some(1024)).is_empty());
    let reserve = |host: &mut Host| host.situation.disk_reserve_mib = Some(60 << 10);
    assert_eq!(found(reserve), wanted, "there is less than that");
    let full = |host: &mut Host| {
        host.facts.disk = Some(DiskSpace {
            total_bytes: 100 << 30,
            available_bytes: 1 << 30,
        });
    };
    assert_eq!(found(full), wanted);
}

#[test]
fn only_kernels_that_are_older_than_any_that_was_tried_are_told() {
    let wanted = [("kernel", Severity::Warning)];
    for release in ["5.15.0-105-generic", "6.0.19", "4.19", "odd"] {
        let set = |host: &mut Host| host.facts.kernel_release = release.to_owned();
        assert_eq!(found(set), wanted, "{release}");
    }
    for release in ["6.1.0", "6.12.9-arch1-1", "6.18.44", "7.0.0-rc1"] {
        let set = |host: &mut Host| host.facts.kernel_release = release.to_owned();
        assert!(found(set).is_empty(), "{release}");
    }
}

#[test]
fn engines_that_were_never_tried_are_told() {
    let wanted = [("engine version", Severity::Warning)];
    for (major, minor, is_tried) in [(10, 0, true), (8, 2, false), (11, 0, false)] {
        let version = EngineVersion {
            major,
            minor,
            micro: 0,
        };
        let found = found(|host| host.engine = Some(version));
        assert_eq!(found.is_empty(), is_tried, "{version}");
        assert!(is_tried || found == wanted);
    }
}

#[test]
fn settings_that_cannot_be_read_are_told_and_dangers_come_first() {
    let found = found(|host| {
        host.situation.problem = Some("unknown key".to_owned());
        host.facts.hyperthreading = Some(true);
    });
    let wanted = [
        ("hyperthreading", Severity::Danger),
        ("settings", Severity::Warning),
    ];
    assert_eq!(found, wanted);
}
