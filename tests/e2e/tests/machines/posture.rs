//! What the kernel says about the engine process and about control equals an exact expectation,
//! and the comparison notices every loosened fact.

use std::path::Path;

use anyhow::{Result, ensure};
use dayfly_e2e::jailed::{self, KVM, TUN};
use dayfly_e2e::{Daemon, DaemonOptions, create, setting_or_skip};
use dayfly_host::jail::JailSpec;
use dayfly_host::memory::{MappingSelector, mapping_usage};
use dayfly_host::posture::{DescriptorClass, DescriptorRule, read_posture};
use dayfly_host::{CgroupLimits, Expected, ProcessIdentity, differences};
use dayfly_testkit::kernel_notes_writes;
use dayfly_types::limits;

/// Everything that an engine has open: its own files and sockets, and nothing of anybody else.
/// The log was opened outside the jail, so the kernel shows it by its path there.
fn descriptors(spec: &JailSpec) -> Vec<DescriptorRule> {
    use DescriptorClass as Class;
    let exactly = DescriptorRule::exactly;
    let log = spec.mounts[0]
        .source
        .join("console.log")
        .display()
        .to_string();
    let mut rules = vec![
        exactly(Class::CharacterDevice, "/dev/null".to_owned(), 1),
        exactly(Class::CharacterDevice, TUN.to_owned(), 1),
        exactly(Class::File, log, 2),
        exactly(Class::File, "/run/disk.img".to_owned(), 1),
    ];
    rules.extend((0..3).map(|n| exactly(Class::File, format!("/run/spare{n}.img"), 1)));
    let sealed = ["base.img", "disk-0.raw", "disk-1.img", "memory.img"];
    rules.extend(
        sealed
            .iter()
            .map(|name| exactly(Class::File, format!("/template/{name}"), 1).read_only()),
    );
    rules.extend([
        DescriptorRule::up_to(Class::EventCounter, 64),
        DescriptorRule::up_to(Class::EventPoll, 4),
        DescriptorRule::up_to(Class::SignalQueue, 1),
        // Five that listen: two monitors, two of the agent, and for orders about memory. All but the
        // last are connected, and that one while it discards something.
        DescriptorRule::up_to(Class::UnixSocket, 10),
    ]);
    // What the node borrows to have the guest's writes noted.
    if kernel_notes_writes() {
        rules.push(exactly(
            Class::Other,
            "anon_inode:[userfaultfd]".to_owned(),
            1,
        ));
    }
    if spec.devices.iter().any(|device| device == Path::new(KVM)) {
        rules.extend(virtual_machine());
    }
    rules
}

/// What an engine on KVM has besides: the device, one machine, its one processor and their counters.
fn virtual_machine() -> impl Iterator<Item = DescriptorRule> {
    use DescriptorClass as Class;
    let objects = ["kvm-vm", "kvm-vcpu:0", "kvm-vcpu-stats:0"];
    let objects = objects
        .into_iter()
        .map(|name| DescriptorRule::exactly(Class::Other, format!("anon_inode:{name}"), 1));
    let device = DescriptorRule::exactly(Class::CharacterDevice, KVM.to_owned(), 1);
    std::iter::once(device).chain(objects)
}

#[tokio::test]
async fn the_engine_is_jailed_exactly_as_described() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    let engine = jailed::engine(&daemon, &id)?;
    let spec = jailed::spec(&daemon, &engine)?;
    let group = jailed::control_group(&daemon, &engine)?;
    let mut expected = Expected::of_jail(&spec, group.membership(), descriptors(&spec))?;
    // The engine's own, which it installs at its start.
    expected.filters += 1;
    let posture = read_posture(engine.identity)?;
    let found = differences(&posture, &expected);
    ensure!(
        found.is_empty(),
        "the engine is not as it should be: {found:#?}"
    );

    let wanted = CgroupLimits {
        memory_bytes: (512 + limits::ENGINE_OVERHEAD_MIB) << 20,
        cpu_quota_percent: 100,
        pids_max: u32::try_from(limits::ENGINE_PIDS_MAX)?,
    };
    ensure!(group.limits()? == wanted, "{:?}", group.limits()?);
    let memory = MappingSelector::PathSuffix("memory.img".to_owned());
    ensure!(
        mapping_usage(engine.identity.pid, &memory)?.is_private(),
        "memory is shared"
    );

    every_loosened_fact_is_noticed(&posture, &expected)?;
    daemon.finish().await
}

/// Loosens one fact after the other in what was read, and sees the comparison fail each time.
fn every_loosened_fact_is_noticed(
    posture: &dayfly_host::Posture,
    expected: &Expected,
) -> Result<()> {
    type Loosen = fn(&mut dayfly_host::Posture);
    let loosened: [(&str, Loosen); 12] = [
        ("user id of one thread", |p| p.threads[0].user_ids.saved = 0),
        ("group id of one thread", |p| {
            p.threads[0].group_ids.effective = 0
        }),
        ("one more group", |p| p.threads[0].groups.push(0)),
        ("one capability", |p| {
            p.threads[0].capabilities.permitted = 1
        }),
        ("one bounding capability", |p| {
            p.threads[0].capabilities.bounding = 1
        }),
        ("new privileges", |p| p.threads[0].no_new_privileges = false),
        ("no filter", |p| p.threads[0].seccomp_mode = 0),
        ("a filter less", |p| p.threads[0].seccomp_filters -= 1),
        ("a mount more", |p| {
            let mut extra = p.mounts[0].clone();
            extra.mount_point = "/etc".into();
            p.mounts.push(extra);
        }),
        ("a descriptor more", |p| {
            let mut extra = p.descriptors[0].clone();
            extra.name = "/etc/shadow".to_owned();
            extra.class = DescriptorClass::File;
            p.descriptors.push(extra);
        }),
        ("another control group", |p| {
            for path in p.cgroups.values_mut() {
                *path = "/".to_owned();
            }
        }),
        ("dumpable", |p| p.is_dumpable = true),
    ];
    for (what, loosen) in loosened {
        let mut changed = posture.clone();
        loosen(&mut changed);
        ensure!(
            !differences(&changed, expected).is_empty(),
            "{what} was not noticed"
        );
    }
    let mut changed = posture.clone();
    let host = expected.host_namespaces["net"];
    changed.threads[0].namespaces.insert("net".to_owned(), host);
    ensure!(
        !differences(&changed, expected).is_empty(),
        "the host's network was not noticed"
    );
    dayfly_e2e::figure!("{} loosened facts were noticed", loosened.len() + 1);
    Ok(())
}

#[tokio::test]
async fn control_is_not_root_and_has_no_capability() -> Result<()> {
    let setting = setting_or_skip!();
    let daemon = Daemon::start(&setting, DaemonOptions::default()).await?;
    let uid = jailed::first_uid(&daemon)?;
    let posture = read_posture(ProcessIdentity::of(daemon.role_pid("control")?)?)?;
    ensure!(
        posture.threads.len() > 1,
        "the control process has one thread only"
    );
    for thread in &posture.threads {
        ensure!(
            thread.user_ids.are_all(uid) && thread.group_ids.are_all(uid),
            "{thread:?}"
        );
        ensure!(thread.groups.is_empty(), "{thread:?}");
        let sets = &thread.capabilities;
        let all = sets.inheritable | sets.permitted | sets.effective | sets.bounding | sets.ambient;
        ensure!(all == 0, "{sets:?}");
        ensure!(thread.no_new_privileges, "{thread:?}");
    }
    nothing_of_a_role_is_shown_or_kept(&daemon)?;
    // The positive control: the node does have what control must not.
    let node = read_posture(ProcessIdentity::of(daemon.role_pid("node")?)?)?;
    ensure!(node.threads[0].capabilities.effective != 0);
    // What only root may read stays closed to it.
    let key = std::fs::metadata(daemon.path().join("admin.key"))?;
    ensure!(std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777 == 0o600);
    ensure!(std::os::unix::fs::MetadataExt::uid(&key) == 0);
    daemon.finish().await
}

/// Memory of the daemon's processes goes into no file, and what the list of processes shows holds
/// nothing that leads to a key.
fn nothing_of_a_role_is_shown_or_kept(daemon: &Daemon) -> Result<()> {
    let is_digest = |word: &str| word.len() == 64 && word.bytes().all(|it| it.is_ascii_hexdigit());
    let pids = [
        daemon.pid()?,
        daemon.role_pid("node")?,
        daemon.role_pid("control")?,
    ];
    for pid in pids {
        let posture = read_posture(ProcessIdentity::of(pid)?)?;
        ensure!(!posture.is_dumpable, "process {pid} may be dumped");
        let core = posture.limits.get("Max core file size");
        ensure!(
            core.is_some_and(|limit| limit.hard == Some(0)),
            "process {pid} may write core files: {core:?}"
        );
        for place in ["cmdline", "environ"] {
            let shown = std::fs::read(format!("/proc/{pid}/{place}"))?;
            let shown = String::from_utf8_lossy(&shown);
            let mut words = shown.split(['\0', '=']);
            ensure!(
                !words.any(is_digest),
                "{place} of {pid} shows a digest: {shown}"
            );
            // The positive control: this is the place where it would be shown.
            ensure!(place != "cmdline" || shown.contains("dayflyd"), "{shown}");
        }
    }
    Ok(())
}
