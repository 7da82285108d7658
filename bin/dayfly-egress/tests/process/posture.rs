//! What the kernel says about the program.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use super::suite::proxy::UID;
use super::suite::world::{World, allow};

#[test]
fn a18_it_has_no_privilege_and_shows_itself_to_nobody() {
    let Some(mut world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let pid = world.proxy.program().unwrap().id();
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let facts: HashMap<&str, &str> = status
            .lines()
            .filter_map(|line| line.split_once(":\t"))
            .collect();
        let uids = [
            UID.to_string(),
            UID.to_string(),
            UID.to_string(),
            UID.to_string(),
        ]
        .join("\t");
        assert_eq!((facts["Uid"], facts["Gid"]), (uids.as_str(), uids.as_str()));
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(facts[set], "0000000000000000", "{set}");
        }
        assert_eq!((facts["NoNewPrivs"], facts["Seccomp"]), ("1", "2"));
    }
    let owner = fs::metadata(format!("/proc/{pid}/environ")).unwrap().uid();
    assert_eq!(
        owner, 0,
        "a process that can be dumped owns its own files there"
    );
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core"));
    assert!(
        core.unwrap()
            .split_whitespace()
            .filter(|part| *part == "0")
            .count()
            == 2
    );
    let open = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    let open: Vec<&str> = open.split_whitespace().collect();
    assert_eq!(open[3], open[4], "as many descriptors as it may have");
}

#[test]
fn it_refuses_to_be_root() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can try this");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control.sock");
    let output = Command::new(env!("CARGO_BIN_EXE_dayfly-egress"))
        .arg("--socket")
        .arg(&socket)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("as root"));
    assert!(!socket.exists());
}

#[test]
fn it_ends_in_order_when_it_is_told_to() {
    let Some(mut world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let client = world.client().clone();
    let program = world.proxy.program().unwrap();
    let pid = Pid::from_raw(i32::try_from(program.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let status = program.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    world.wait_until_over(&client);
}
