//! Against the host's real hierarchies, as root.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::files::{remove_directories, write_value};
use super::*;

const LIMIT: Duration = Duration::from_secs(20);

/// Removes what a test made, whatever became of the test.
struct Scratch(CgroupTree);

impl Scratch {
    fn new(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: control groups need root");
            return None;
        }
        let instance = format!("test-{test}-{}", std::process::id());
        Some(Self(CgroupTree::open(&instance).unwrap()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for name in self.0.list().unwrap() {
            let group = self.0.open_existing(&name).unwrap();
            group.kill_all(LIMIT).unwrap();
            group.remove(LIMIT).unwrap();
        }
        self.0.remove(LIMIT).unwrap();
    }
}

const LIMITS: CgroupLimits = CgroupLimits {
    memory_bytes: 64 << 20,
    cpu_quota_percent: 150,
    pids_max: 40,
};

/// A child that waits for its input before it runs `script`, so that it can be moved first.
fn gated_shell(script: &str) -> Child {
    Command::new("sh")
        .args(["-c", &format!("read gate; {script}")])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn open_gate(child: &mut Child) {
    use std::io::Write;
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
}

/// Waits for a condition that no event announces.
fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not come in time");
        std::thread::yield_now();
    }
}

#[test]
fn limits_are_read_back_as_they_were_set() {
    let Some(scratch) = Scratch::new("limits") else {
        return;
    };
    let group = scratch.0.create("one", &LIMITS).unwrap();
    assert_eq!(group.limits().unwrap(), LIMITS);
    assert_eq!(group.usage().unwrap().oom_kills, 0);
    assert_eq!(scratch.0.list().unwrap(), ["one"]);
    assert!(matches!(
        scratch.0.create("one", &LIMITS),
        Err(CgroupError::Exists { .. })
    ));
    assert!(list_instances().unwrap().contains(&scratch.0.instance));
    group.remove(LIMIT).unwrap();
    group.remove(LIMIT).unwrap();
    assert!(matches!(
        scratch.0.open_existing("one"),
        Err(CgroupError::Absent { .. })
    ));
}

#[test]
fn a_group_is_made_also_after_the_unit_around_it_was_started_anew() {
    let Some(scratch) = Scratch::new("anew") else {
        return;
    };
    scratch.0.remove(LIMIT).unwrap();
    let group = scratch.0.create("one", &LIMITS).unwrap();
    assert_eq!(group.limits().unwrap(), LIMITS);
    assert_eq!(group.cpu_weight().unwrap(), 100);
    group.set_cpu_weight(25).unwrap();
    assert_eq!(group.cpu_weight().unwrap(), 25);
    group.set_limits(&LIMITS).unwrap();
    assert_eq!(group.cpu_weight().unwrap(), 25);
    assert_eq!(scratch.0.list().unwrap(), ["one"]);
}

#[test]
fn kill_all_ends_a_fork_loop() {
    let Some(scratch) = Scratch::new("forks") else {
        return;
    };
    let group = scratch.0.create("bomb", &LIMITS).unwrap();
    // Each of the twelve forks without pause; together they stay below the limit.
    let spin = "while :; do /bin/true; done";
    let script = format!("for n in 1 2 3 4 5 6 7 8 9 10 11 12; do {spin} & done; {spin}");
    let mut child = gated_shell(&script);
    group.add(i32::try_from(child.id()).unwrap()).unwrap();
    open_gate(&mut child);
    wait_for("a crowd of processes", || group.pids().unwrap().len() > 10);
    group.kill_all(LIMIT).unwrap();
    assert!(group.pids().unwrap().is_empty());
    child.wait().unwrap();
    group.remove(LIMIT).unwrap();
}

#[test]
fn memory_above_the_limit_is_killed_and_counted() {
    let Some(scratch) = Scratch::new("memory") else {
        return;
    };
    let group = scratch.0.create("eater", &LIMITS).unwrap();
    let mut child = gated_shell("exec head -c 300m /dev/zero | tail -c 300m >/dev/null");
    group.add(i32::try_from(child.id()).unwrap()).unwrap();
    open_gate(&mut child);
    wait_for("an out-of-memory kill", || {
        group.usage().unwrap().oom_kills > 0
    });
    group.kill_all(LIMIT).unwrap();
    child.wait().unwrap();
    assert!(group.usage().unwrap().cpu_micros > 0);
}

#[test]
fn a_group_with_members_is_busy_until_they_end() {
    let Some(scratch) = Scratch::new("busy") else {
        return;
    };
    let group = scratch.0.create("held", &LIMITS).unwrap();
    let mut child = gated_shell(":");
    let pid = i32::try_from(child.id()).unwrap();
    group.add(pid).unwrap();
    assert!(group.pids().unwrap().contains(&pid));
    assert!(matches!(
        group.remove(Duration::from_millis(20)),
        Err(CgroupError::Busy { .. })
    ));
    // The child stays a zombie here: nobody has waited for it yet.
    group.kill_all(LIMIT).unwrap();
    group.remove(LIMIT).unwrap();
    child.wait().unwrap();
}

#[test]
fn names_that_could_leave_the_tree_are_refused() {
    for name in ["", "..", "a/b", ".", "A", "a b", "a\n"] {
        assert!(
            matches!(check_name(name), Err(CgroupError::Name { .. })),
            "{name:?}"
        );
    }
}

/// The unified hierarchy of a host whose controllers are elsewhere still has members and events.
#[test]
fn the_unified_hierarchy_kills_and_announces_emptiness() {
    let unified = crate::mounts::own_mounts().unwrap();
    let Some(mount) = unified.iter().find(|mount| mount.file_system == "cgroup2") else {
        println!("skipped: no unified hierarchy is mounted");
        return;
    };
    if !rustix::process::geteuid().is_root() {
        println!("skipped: control groups need root");
        return;
    }
    let group = mount
        .mount_point
        .join(format!("dayfly-test-unified-{}", std::process::id()));
    fs::create_dir(&group).unwrap();
    let mut child = gated_shell(":");
    write_value(&group.join("cgroup.procs"), &child.id().to_string()).unwrap();
    let now = Instant::now();
    assert!(!kill::wait_until_unpopulated(&group, now).unwrap());
    assert!(kill::kill_in_kernel(&group).unwrap());
    assert!(kill::wait_until_unpopulated(&group, now + LIMIT).unwrap());
    child.wait().unwrap();
    remove_directories(std::slice::from_ref(&group), LIMIT).unwrap();
    assert!(kill::kill_in_kernel(&group).unwrap());
}

/// The files of a version 2 group, as plain files: what is written is what is read back.
#[test]
fn version_two_limits_have_the_documented_formats() {
    let directory = tempfile::tempdir().unwrap();
    let group = directory.path();
    fs::write(group.join("memory.swap.max"), "max\n").unwrap();
    v2::set_limits(group, &LIMITS).unwrap();
    assert_eq!(
        fs::read_to_string(group.join("cpu.max")).unwrap(),
        "150000 100000"
    );
    assert_eq!(
        fs::read_to_string(group.join("memory.swap.max")).unwrap(),
        "0"
    );
    assert_eq!(v2::limits(group).unwrap(), LIMITS);
    v2::set_cpu_weight(group, 25).unwrap();
    assert_eq!(fs::read_to_string(group.join("cpu.weight")).unwrap(), "25");
    assert_eq!(v2::cpu_weight(group).unwrap(), 25);
    fs::write(group.join("memory.current"), "4096\n").unwrap();
    fs::write(group.join("cpu.stat"), "usage_usec 17\nuser_usec 9\n").unwrap();
    fs::write(group.join("memory.events"), "low 0\noom 3\noom_kill 2\n").unwrap();
    let usage = v2::usage(group).unwrap();
    assert_eq!(
        usage,
        CgroupUsage {
            memory_bytes: 4096,
            cpu_micros: 17,
            oom_kills: 2
        }
    );
}
