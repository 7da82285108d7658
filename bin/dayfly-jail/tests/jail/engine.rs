//! The real engine inside a jail, where it is installed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use dayfly_host::engine_root::{EngineRootSpec, RootFile};
use dayfly_host::posture::{DescriptorClass, DescriptorRule, differences, read_posture};
use dayfly_host::unix::{connect_unix_within, peer_credentials};

use crate::support::{LIMIT, Slot};

const PROGRAM: &str = "/usr/bin/qemu-system-x86_64";
const FIRMWARE: &str = "/usr/share/qemu/qboot.rom";
const ARGUMENTS: &str = "-nodefaults -no-user-config -nographic -M microvm,acpi=on -m 64M \
    -accel tcg,tb-size=16 -bios /usr/share/qemu/qboot.rom \
    -qmp unix:/run/qmp.sock,server=on,wait=off \
    -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

fn slot() -> Option<Slot> {
    if !Path::new(PROGRAM).exists() || !Path::new(FIRMWARE).exists() {
        println!("skipped: {PROGRAM} or its firmware is not installed");
        return None;
    }
    let mut slot = Slot::with_root(&EngineRootSpec {
        program: PathBuf::from(PROGRAM),
        files: vec![RootFile::same(FIRMWARE)],
        mount_directories: ["/run", "/template"].map(PathBuf::from).into(),
        mount_files: Vec::new(),
    })?;
    slot.spec.arguments = ARGUMENTS
        .split_ascii_whitespace()
        .map(str::to_owned)
        .collect();
    Some(slot)
}

/// Sends a command and answers the first line that carries its result.
fn command(stream: &mut BufReader<UnixStream>, name: &str) -> String {
    let request = format!("{{\"execute\":\"{name}\"}}\n");
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    loop {
        let mut line = String::new();
        assert!(
            stream.read_line(&mut line).unwrap() > 0,
            "the engine hung up"
        );
        if line.contains("\"return\"") || line.contains("\"error\"") {
            return line;
        }
    }
}

#[tokio::test]
async fn the_engine_runs_in_its_jail_and_looks_as_expected() {
    let Some(slot) = slot() else { return };
    let identity = slot.launch(&slot.spec).await.unwrap();
    let socket = slot.directory.join("run/qmp.sock");
    let stream = match connect_unix_within(&socket, LIMIT).await {
        Ok(stream) => stream,
        Err(error) => panic!("no socket: {error}\n{}", slot.log()),
    };
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(peer_credentials(&stream).unwrap().uid, slot.spec.uid);
    let mut stream = BufReader::new(stream);
    assert!(command(&mut stream, "qmp_capabilities").contains("return"));
    assert!(command(&mut stream, "query-status").contains("\"running\": true"));
    let mut expected = slot.expected();
    let allowed = [
        (DescriptorClass::UnixSocket, 2),
        (DescriptorClass::EventCounter, 16),
        (DescriptorClass::EventPoll, 4),
        (DescriptorClass::SignalQueue, 1),
    ];
    expected
        .descriptors
        .extend(allowed.map(|(class, count)| DescriptorRule::up_to(class, count)));
    let posture = read_posture(identity).unwrap();
    assert_eq!(differences(&posture, &expected), Vec::<String>::new());
    assert!(posture.threads.len() > 1, "every thread was looked at");
    assert!(posture.mappings.shared_writable_files.is_empty());
    assert!(slot.cgroup.usage().unwrap().memory_bytes > 0);
}
