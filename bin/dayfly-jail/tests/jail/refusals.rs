//! What was planted is refused, what fails says where, and what runs inside can do nothing else.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::support::{LIMIT, Slot};
use dayfly_attacker::engine::{Attempt, Came};
use dayfly_host::jail::{BindMount, JailLaunchError, JailSpec, JailStep, MountAccess};
use dayfly_host::process::Exit;

/// Launches and wants a refusal at one step, with nothing left running.
async fn assert_refused(slot: &Slot, spec: &JailSpec, wanted: JailStep) {
    match slot.launch(spec).await {
        Err(JailLaunchError::Failed { step, .. }) => assert_eq!(step, wanted),
        other => panic!("{wanted:?} did not refuse: {other:?}"),
    }
    assert!(slot.cgroup.pids().unwrap().is_empty());
}

fn bind(source: PathBuf, target: &str, access: MountAccess) -> BindMount {
    BindMount {
        source,
        target: PathBuf::from(target),
        access,
    }
}

#[tokio::test]
async fn planted_links_are_refused_and_their_targets_untouched() {
    let Some(slot) = Slot::new() else { return };
    let canary = slot.directory.join("other/canary");
    fs::write(&canary, "alive").unwrap();
    let inside = |name: &str| slot.directory.join("run").join(name);
    symlink(&canary, inside("file-link")).unwrap();
    symlink(slot.directory.join("other"), inside("directory-link")).unwrap();
    fs::hard_link(&canary, inside("second-name")).unwrap();
    let sources = [
        (inside("file-link"), "/disk"),
        (inside("directory-link"), "/spare"),
        (inside("directory-link/canary"), "/disk"),
        (inside("second-name"), "/disk"),
    ];
    for (source, target) in sources {
        let mut spec = slot.spec.clone();
        spec.mounts
            .push(bind(source, target, MountAccess::ReadWrite));
        assert_refused(&slot, &spec, JailStep::Bind).await;
    }
    let mut target = slot.spec.clone();
    let other = slot.directory.join("other");
    target
        .mounts
        .push(bind(other, "/run/directory-link", MountAccess::ReadOnly));
    assert_refused(&slot, &target, JailStep::Bind).await;
    let mut root = slot.spec.clone();
    root.root = inside("directory-link");
    assert_refused(&slot, &root, JailStep::MountRoot).await;
    let mut network = slot.spec.clone();
    symlink(&slot.spec.netns, inside("net-link")).unwrap();
    network.netns = inside("net-link");
    assert_refused(&slot, &network, JailStep::EnterNetwork).await;
    assert_eq!(fs::read_to_string(&canary).unwrap(), "alive");
}

#[tokio::test]
async fn sources_and_devices_of_the_wrong_kind_are_refused() {
    let Some(slot) = Slot::new() else { return };
    let mut spec = slot.spec.clone();
    spec.mounts.push(bind(
        PathBuf::from("/dev/zero"),
        "/disk",
        MountAccess::ReadOnly,
    ));
    assert_refused(&slot, &spec, JailStep::Bind).await;
    let mut spec = slot.spec.clone();
    spec.mounts.push(bind(
        slot.directory.join("absent"),
        "/disk",
        MountAccess::ReadOnly,
    ));
    assert_refused(&slot, &spec, JailStep::Bind).await;
    let mut spec = slot.spec.clone();
    spec.devices.push(PathBuf::from("/dev/shm"));
    assert_refused(&slot, &spec, JailStep::MountDevices).await;
    let mut spec = slot.spec.clone();
    spec.netns = slot.directory.join("engine.log");
    assert_refused(&slot, &spec, JailStep::EnterNetwork).await;
    let mut spec = slot.spec.clone();
    spec.cgroup_procs
        .push(PathBuf::from("/nowhere/cgroup.procs"));
    assert_refused(&slot, &spec, JailStep::JoinCgroup).await;
}

#[tokio::test]
async fn a_program_that_is_not_there_fails_at_the_last_step() {
    let Some(slot) = Slot::new() else { return };
    let mut spec = slot.spec.clone();
    spec.program = PathBuf::from("/usr/bin/absent");
    let error = slot.launch(&spec).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot execute the engine: /usr/bin/absent"
    );
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("No such file"), "{source}");
    assert!(slot.cgroup.pids().unwrap().is_empty());
}

#[tokio::test]
async fn a_root_user_is_refused_before_anything_is_started() {
    let Some(slot) = Slot::new() else { return };
    let spec = JailSpec {
        uid: 0,
        ..slot.spec.clone()
    };
    assert!(matches!(
        slot.launch(&spec).await,
        Err(JailLaunchError::InvalidSpec(_))
    ));
    let missing = Path::new("/no/such/launcher");
    let output = fs::File::create(slot.log_path()).unwrap().into();
    let result = dayfly_host::launch(missing, &slot.spec, output, LIMIT).await;
    assert!(matches!(result, Err(JailLaunchError::Start { .. })));
}

#[tokio::test]
async fn inside_only_the_slot_can_be_written_and_nothing_else_is_there() {
    let Some(slot) = Slot::new() else { return };
    let image = slot.directory.join("template/image");
    fs::write(&image, "sealed").unwrap();
    // Anybody's, so that it is the mount that keeps it.
    fs::set_permissions(&image, fs::Permissions::from_mode(0o666)).unwrap();
    let read = |path: &str| Attempt::Read(path.into());
    let write = |path: &str| Attempt::Write(path.into());
    let create = |path: &str| Attempt::Create(path.into());
    let (absent, read_only) = (Came::Refused(libc::ENOENT), Came::Refused(libc::EROFS));
    let denied = Came::Refused(libc::EACCES);
    let cases = [
        (read("/template/image"), Came::Done),
        (create("/run/made"), Came::Done),
        (write("/template/image"), read_only),
        (create("/template/made"), read_only),
        (create("/usr/made"), read_only),
        (create("/dev/made"), read_only),
        (read("/bin/sleep"), denied),
        (write("/dev/net/tun"), Came::Done),
        (read("/dev/null"), Came::Done),
        (read("/dev/zero"), absent),
        (read("/proc/self/status"), absent),
        (read("/sys/kernel/notes"), absent),
        (read("/etc/passwd"), absent),
        (read("/tmp"), absent),
        (read("/var"), absent),
        (read("/root"), absent),
        (read("/home"), absent),
    ];
    let attempts: Vec<Attempt> = cases.iter().map(|(attempt, _)| attempt.clone()).collect();
    let (exit, came) = slot.run(&slot.taken_over(&attempts)).await;
    assert_eq!(exit, Exit::Status(0), "{}", slot.log());
    let found: Vec<_> = attempts.into_iter().zip(came).collect();
    assert_eq!(found, cases);
    let mode = fs::metadata(slot.directory.join("run/made"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o600, "what the engine makes is private");
}

#[tokio::test]
async fn a_parallel_launch_into_other_slots_does_not_mix_them_up() {
    let (Some(first), Some(second)) = (Slot::new(), Slot::new()) else {
        return;
    };
    let (one, two) = tokio::join!(first.launch(&first.spec), second.launch(&second.spec));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert!(first.cgroup.pids().unwrap().contains(&one.pid));
    assert!(second.cgroup.pids().unwrap().contains(&two.pid));
    assert_ne!(one, two);
}
