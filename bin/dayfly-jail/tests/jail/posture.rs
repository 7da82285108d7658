//! A jailed process looks from outside exactly as it should, and any loosening shows.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::support::{CGROUP_LIMITS, LIMIT, Slot, posture_of};
use dayfly_attacker::engine::Attempt;
use dayfly_host::jail::{BindMount, JailSpec, MountAccess};
use dayfly_host::leftovers::{InstancePlaces, Leftover, find_leftovers};
use dayfly_host::posture::{Posture, differences, read_posture};
use dayfly_host::process::{Exit, Pidfd, ProcessIdentity};

#[tokio::test]
async fn a_jailed_process_is_exactly_as_expected() {
    let Some(slot) = Slot::new() else { return };
    let identity = slot.launch(&slot.spec).await.unwrap();
    let posture = read_posture(identity).unwrap();
    assert_eq!(
        differences(&posture, &slot.expected()),
        Vec::<String>::new()
    );
    assert_eq!(posture.mounts.len(), 4);
    assert_eq!(posture.descriptors.len(), 3);
    assert_eq!(slot.cgroup.limits().unwrap(), CGROUP_LIMITS);
    assert_eq!(
        slot.cgroup.pids().unwrap().into_iter().collect::<Vec<_>>(),
        [identity.pid]
    );
    assert_eq!(
        fs::read(format!("/proc/{}/environ", identity.pid)).unwrap(),
        b""
    );
    let json = serde_json::to_string(&posture).unwrap();
    assert_eq!(serde_json::from_str::<Posture>(&json).unwrap(), posture);
}

#[tokio::test]
async fn an_engine_outlives_its_launcher_and_is_reaped_by_the_subreaper() {
    let Some(slot) = Slot::new() else { return };
    let identity = slot.launch(&slot.spec).await.unwrap();
    let handle = Pidfd::open(identity).unwrap();
    assert!(handle.is_alive());
    handle.kill().unwrap();
    let exit = tokio::time::timeout(LIMIT, handle.wait())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(exit, Exit::Signal(9));
    assert!(ProcessIdentity::of(identity.pid).map_or(true, |other| other != identity));
}

#[tokio::test]
async fn an_engine_without_its_control_group_is_still_found_by_its_root() {
    let Some(slot) = Slot::new() else { return };
    let identity = slot.launch(&slot.spec).await.unwrap();
    let places = InstancePlaces {
        instance: "another".to_owned(),
        data_directory: slot.directory.clone(),
        netns_directory: slot.directory.join("no-netns"),
        slots_directory: slot.directory.join("no-slots"),
    };
    let found = find_leftovers(&places).unwrap();
    let command = "sleep".to_owned();
    let process = Leftover::Process {
        identity,
        command,
        cgroup: None,
    };
    let mount_point = slot.spec.netns.clone();
    assert_eq!(found, [process, Leftover::Mount { mount_point }]);
}

/// Launches something looser than what is expected and wants to hear of it.
async fn assert_difference(change: impl FnOnce(&Slot, &mut JailSpec), word: &str) {
    assert_difference_of(change, word, "/sleep").await;
}

async fn assert_difference_of(
    change: impl FnOnce(&Slot, &mut JailSpec),
    word: &str,
    program: &str,
) {
    let Some(slot) = Slot::new() else { return };
    let expected = slot.expected();
    let mut spec = slot.spec.clone();
    change(&slot, &mut spec);
    let identity = slot.launch(&spec).await.unwrap();
    // What the process does by itself takes a moment.
    let deadline = Instant::now() + LIMIT;
    loop {
        let found = differences(&posture_of(identity, program), &expected);
        if found.iter().any(|text| text.contains(word)) {
            break;
        }
        assert!(Instant::now() < deadline, "{word:?} is not in {found:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_extra_mount_shows() {
    let change = |slot: &Slot, spec: &mut JailSpec| {
        spec.mounts.push(BindMount {
            source: slot.directory.join("other"),
            target: PathBuf::from("/spare"),
            access: MountAccess::ReadOnly,
        });
    };
    assert_difference(change, "mount /spare").await;
}

#[tokio::test]
async fn a_writable_template_shows() {
    let change = |_: &Slot, spec: &mut JailSpec| spec.mounts[1].access = MountAccess::ReadWrite;
    assert_difference(change, "mount /template").await;
}

#[tokio::test]
async fn the_directory_of_another_slot_in_place_of_its_own_shows() {
    let change = |slot: &Slot, spec: &mut JailSpec| {
        spec.mounts[0].source = slot.directory.join("other");
        spec.working_directory = PathBuf::from("/");
    };
    assert_difference(change, "mount /run").await;
}

#[tokio::test]
async fn the_network_of_the_host_shows() {
    let change = |slot: &Slot, spec: &mut JailSpec| {
        let path = slot.directory.join("host-net");
        fs::write(&path, "").unwrap();
        rustix::mount::mount_bind("/proc/self/ns/net", &path).unwrap();
        spec.netns = path;
    };
    assert_difference(change, "shares namespace net").await;
}

#[tokio::test]
async fn an_extra_descriptor_shows() {
    let change = |slot: &Slot, spec: &mut JailSpec| {
        // It opens a directory by a call of its own and waits.
        let forever = Attempt::call(libc::SYS_ppoll, &[0, 0, 0, 0, 0]);
        let open = Attempt::Call(
            libc::SYS_openat,
            vec!["-100".to_owned(), "/template".to_owned(), "0".to_owned()],
        );
        *spec = slot.taken_over(&[open, forever]);
    };
    let word = "(Directory /template)";
    assert_difference_of(change, word, dayfly_attacker::engine::PROGRAM).await;
}

#[tokio::test]
async fn another_user_and_a_looser_limit_show() {
    assert_difference(|_, spec| spec.uid += 5000, "users are").await;
    assert_difference(|_, spec| spec.gid += 5000, "groups are").await;
    assert_difference(
        |_, spec| spec.out_of_memory_adjustment = 600,
        "out-of-memory",
    )
    .await;
    assert_difference(|_, spec| spec.limits.open_files = 1024, "Max open files").await;
}

#[tokio::test]
async fn a_missing_control_group_shows() {
    let Some(slot) = Slot::new() else { return };
    if slot.spec.cgroup_procs.len() < 2 {
        println!("skipped: the unified hierarchy has one group to join");
        return;
    }
    assert_difference(
        |_, spec| drop(spec.cgroup_procs.remove(0)),
        "control group of",
    )
    .await;
}

#[tokio::test]
async fn what_the_jail_never_grants_shows_too() {
    let Some(slot) = Slot::new() else { return };
    let expected = slot.expected();
    let posture = read_posture(slot.launch(&slot.spec).await.unwrap()).unwrap();
    type Change = fn(&mut Posture);
    let changes: [(Change, &str); 9] = [
        (
            |posture| posture.threads[0].capabilities.effective = 1,
            "capabilities",
        ),
        (
            |posture| posture.threads[0].capabilities.bounding = 1 << 21,
            "capabilities",
        ),
        (
            |posture| posture.threads[0].capabilities.ambient = 1,
            "capabilities",
        ),
        (
            |posture| posture.threads[0].no_new_privileges = false,
            "privileges",
        ),
        (|posture| posture.threads[0].seccomp_mode = 0, "seccomp"),
        (
            |posture| posture.threads[0].seccomp_filters -= 1,
            "filters of system calls",
        ),
        (|posture| posture.threads[0].groups.push(0), "groups"),
        (|posture| posture.is_dumpable = true, "dumpable"),
        (|posture| drop(posture.mounts.remove(1)), "is missing"),
    ];
    for (change, word) in changes {
        let mut changed = posture.clone();
        change(&mut changed);
        let found = differences(&changed, &expected);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(word), "{word:?} is not in {found:?}");
    }
}

#[tokio::test]
async fn an_unconfined_process_differs_in_everything() {
    let Some(slot) = Slot::new() else { return };
    let mut child = Command::new("/bin/sleep")
        .arg("1000")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let identity = ProcessIdentity::of(i32::try_from(child.id()).unwrap()).unwrap();
    let found = differences(&posture_of(identity, "/sleep"), &slot.expected());
    child.kill().unwrap();
    child.wait().unwrap();
    let words = [
        "users",
        "groups",
        "capabilities",
        "privileges",
        "seccomp",
        "namespace mnt",
        "namespace pid",
        "namespace ipc",
        "namespace uts",
        "namespace net",
        "namespace cgroup",
        "mount",
        "control group",
        "Max core file size",
    ];
    for word in words {
        assert!(
            found.iter().any(|text| text.contains(word)),
            "{word:?} is not in {found:?}"
        );
    }
}
