//! The real engine inside a jail, where it is installed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dayfly_host::engine_root::{EngineRootSpec, RootFile};
use dayfly_host::jail::JailCalls;
use dayfly_host::posture::{DescriptorClass, DescriptorRule, differences, read_posture};
use dayfly_host::process::{Exit, Pidfd};
use dayfly_host::unix::{connect_unix_within, peer_credentials};

use crate::support::{LIMIT, Slot};

const PROGRAM: &str = "/usr/bin/qemu-system-x86_64";
const FIRMWARE: &str = "/usr/share/qemu/qboot.rom";
const EMULATION: &str = "-accel tcg,tb-size=16";
// A hypervisor inside another one may offer this register and then refuse to have it written.
const ON_KVM: &str = "-accel kvm -cpu host,-arch-capabilities";
const ARGUMENTS_ANYWHERE: &str = "-nodefaults -no-user-config -nographic -M microvm,acpi=on \
    -m 64M -bios /usr/share/qemu/qboot.rom";
const ARGUMENTS: &str = "-qmp unix:/run/qmp.sock,server=on,wait=off \
    -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

fn slot(accelerator: &str) -> Option<Slot> {
    if !Path::new(PROGRAM).exists() || !Path::new(FIRMWARE).exists() {
        println!("skipped: {PROGRAM} or its firmware is not installed");
        return None;
    }
    let mut slot = Slot::with_root(&EngineRootSpec {
        label: "a test".to_owned(),
        program: PathBuf::from(PROGRAM),
        files: vec![RootFile::same(FIRMWARE)],
        mount_directories: ["/run", "/template"].map(PathBuf::from).into(),
        mount_files: Vec::new(),
    })?;
    slot.spec.arguments = [ARGUMENTS_ANYWHERE, ARGUMENTS, accelerator]
        .into_iter()
        .flat_map(str::split_ascii_whitespace)
        .map(str::to_owned)
        .collect();
    Some(slot)
}

/// Sends a command and answers the first line that carries its result.
fn command(stream: &mut BufReader<UnixStream>, name: &str) -> String {
    ask(stream, &format!("{{\"execute\":\"{name}\"}}"))
}

fn ask(stream: &mut BufReader<UnixStream>, request: &str) -> String {
    writeln!(stream.get_mut(), "{request}").unwrap();
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
    let Some(slot) = slot(EMULATION) else { return };
    let identity = slot.launch(&slot.spec).await.unwrap();
    let mut stream = monitor(&slot).await;
    let peer = peer_credentials(stream.get_ref()).unwrap();
    assert_eq!(peer.uid, slot.spec.uid);
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
    expected.filters += 1;
    let posture = read_posture(identity).unwrap();
    assert_eq!(differences(&posture, &expected), Vec::<String>::new());
    assert!(posture.threads.len() > 1, "every thread was looked at");
    assert!(posture.mappings.shared_writable_files.is_empty());
    assert!(slot.cgroup.usage().unwrap().memory_bytes > 0);
}

/// The monitor of an engine, once it answers.
async fn monitor(slot: &Slot) -> BufReader<UnixStream> {
    let socket = slot.directory.join("run/qmp.sock");
    let stream = match connect_unix_within(&socket, LIMIT).await {
        Ok(stream) => stream,
        Err(error) => panic!("no socket: {error}\n{}", slot.log()),
    };
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut stream = BufReader::new(stream);
    assert!(command(&mut stream, "qmp_capabilities").contains("return"));
    stream
}

/// The engine is asked for what it needs a process for.
#[tokio::test]
async fn an_engine_that_would_start_a_program_is_ended() {
    let Some(slot) = slot(EMULATION) else { return };
    let identity = slot.launch(&slot.spec).await.unwrap();
    let handle = Pidfd::open(identity).unwrap();
    let mut stream = monitor(&slot).await;
    assert!(command(&mut stream, "query-status").contains("return"));
    // In one write: the engine acts on the last brace, and ends before it would read more.
    let request = "{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"exec:/bin/true\"}}\n";
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    let exit = tokio::time::timeout(LIMIT, handle.wait()).await;
    assert_eq!(exit.unwrap().unwrap(), Exit::Signal(libc::SIGSYS));
}

const KVM: &str = "/dev/kvm";

/// What keeps the engine from starting on this host's hypervisor when nothing confines it.
fn refusal_without_jail() -> Option<String> {
    let mut engine = Command::new(PROGRAM)
        .args(ARGUMENTS_ANYWHERE.split_ascii_whitespace())
        .args(ON_KVM.split_ascii_whitespace())
        .args(["-S", "-qmp", "stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have ended before it would read this.
    let _ = (engine.stdin.take().unwrap())
        .write_all(br#"{"execute":"qmp_capabilities"}{"execute":"quit"}"#);
    let ended = engine.wait_with_output().unwrap();
    let said = || String::from_utf8_lossy(&ended.stderr).into_owned();
    (!ended.status.success()).then(said)
}

/// An engine on this host's hypervisor, under the list for it; `None` where none starts, confined or
/// not.
fn slot_on_kvm(more: &str) -> Option<Slot> {
    let opened = std::fs::File::options().read(true).write(true).open(KVM);
    if let Err(error) = opened {
        println!("skipped: {KVM} cannot be opened: {error}");
        return None;
    }
    if let Some(reason) = refusal_without_jail() {
        println!("skipped: no engine starts on {KVM}: {reason}");
        return None;
    }
    let mut slot = slot(&format!("{ON_KVM} {more}"))?;
    slot.spec.devices.push(PathBuf::from(KVM));
    slot.spec.calls = JailCalls::KvmEngine;
    Some(slot)
}

/// What a create, a capture and a restore ask of the hypervisor. That a guest boots is not asked:
/// there are hosts with the device on which none does.
#[tokio::test]
async fn an_engine_on_kvm_starts_saves_and_loads_under_its_list() {
    let Some(first) = slot_on_kvm("") else { return };
    let identity = first.launch(&first.spec).await.unwrap();
    let mut stream = monitor(&first).await;
    let posture = read_posture(identity).unwrap();
    let wanted = first.expected().filters + 1;
    assert!(
        posture
            .threads
            .iter()
            .all(|it| it.seccomp_filters == wanted)
    );
    assert!(command(&mut stream, "stop").contains("return"));
    let save = r#"{"execute":"xen-save-devices-state","arguments":{"filename":"/run/state"}}"#;
    let saved = ask(&mut stream, save);
    assert!(saved.contains("return"), "{saved}");
    assert!(command(&mut stream, "cont").contains("return"));
    assert!(command(&mut stream, "query-status").contains("\"running\": true"));

    let options = "-incoming defer -S -global migration.send-configuration=off";
    let Some(second) = slot_on_kvm(options) else {
        return;
    };
    let state = second.directory.join("run/state");
    std::fs::copy(first.directory.join("run/state"), &state).unwrap();
    let uid = second.spec.uid;
    std::os::unix::fs::chown(&state, Some(uid), Some(uid)).unwrap();
    second.launch(&second.spec).await.unwrap();
    let mut stream = monitor(&second).await;
    let load = r#"{"execute":"migrate-incoming","arguments":{"uri":"file:/run/state"}}"#;
    let loaded = ask(&mut stream, load);
    assert!(loaded.contains("return"), "{loaded}");
    // Commands are answered, so the process is there.
    assert!(command(&mut stream, "query-migrate").contains("return"));
    assert!(command(&mut stream, "query-status").contains("return"));
}
