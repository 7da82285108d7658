//! Lines of an engine's monitor.
//!
//! What is promised for any line: no panic; no text of the engine that is long or has control
//! characters where it could reach a log; and a name of a file that is one name in one directory.

use dayfly_vmm_qemu::monitor_lines::{QmpEvent, QmpMessage, parse, plain_file_name};

use super::{Inputs, texts};

const TEXT_CHARACTERS_MAX: usize = 500;

pub(super) fn check(line: &[u8]) {
    match parse(line) {
        Ok(QmpMessage::Event(QmpEvent::Migration { status })) => check_text(&status),
        Ok(QmpMessage::Error { description, .. }) => check_text(&description),
        Ok(_) | Err(_) => {}
    }
    let Ok(image) = std::str::from_utf8(line) else {
        return;
    };
    if let Some(name) = plain_file_name(image) {
        let is_one_name = !name.is_empty() && !name.contains(['/', '\0']) && !name.starts_with('.');
        assert!(is_one_name, "not a plain name: {name:?}");
    }
}

fn check_text(text: &str) {
    assert!(
        text.chars().count() <= TEXT_CHARACTERS_MAX && !text.chars().any(char::is_control),
        "the engine's own words reach a log: {text:?}"
    );
}

pub(super) fn seeds() -> Inputs {
    texts(&[
        r#"{"QMP": {"version": {"qemu": {"micro": 2, "minor": 0, "major": 10}}, "capabilities": []}}"#,
        r#"{"return": {}, "id": 0}"#,
        r#"{"error": {"class": "GenericError", "desc": "no such thing\u001b[2J\n"}, "id": 18446744073709551615}"#,
        r#"{"timestamp": {"seconds": 1}, "event": "MIGRATION", "data": {"status": "completed"}}"#,
        r#"{"event": "STOP"}"#,
        r#"{"event": "RESUME"}"#,
        r#"{"event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-reset"}}"#,
        r#"{"event": "GUEST_PANICKED", "data": {"action": "pause"}}"#,
        r#"{"event": "BLOCK_IO_ERROR", "data": {"nospace": true, "action": "stop"}}"#,
        r#"json:{"driver": "qcow2", "file": {"driver": "file", "filename": "/run/disk.img"}}"#,
        r#"json:{"filename": "/run/../../etc/passwd"}"#,
        "/run/disk-1.img",
        "[[[[[[[[[[",
    ])
}
