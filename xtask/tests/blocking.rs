//! Nothing of the node or of control waits for a disk on a thread that serves calls.
//!
//! A blocked thread of the runtime serves nobody. So work on files has its modules, listed here,
//! which block on purpose; and whoever calls them from elsewhere does it in a closure that is moved
//! to another thread (`disk_lane`).
#![expect(
    clippy::unwrap_used,
    reason = "a check that cannot read the sources must fail"
)]

use std::path::{Path, PathBuf};

use xtask::source::rust_files;

/// What touches files.
const FILE_WORK: [&str; 18] = [
    "fs::",
    "File::",
    "OpenOptions",
    "DirBuilder",
    ".exists()",
    ".is_dir()",
    ".is_file()",
    ".metadata()",
    ".canonicalize()",
    "remove_tree(",
    "write_atomic(",
    "link_regular(",
    "sync(",
    "sync_directory(",
    "sync_file(",
    "make_directory_durable(",
    "disk_space(",
    "set_owner(",
];

/// What the modules below offer to the rest of the node: each of it blocks.
const BLOCKING_CALLS: [&str; 28] = [
    "journal.write(",
    "journal.remove(",
    "journal.entries(",
    "journal.look(",
    "volumes.ensure(",
    "volumes.attach(",
    "volumes.detach(",
    "volumes.resume(",
    "volumes.delete(",
    "volumes.reports(",
    "volumes.find(",
    "captures.begin(",
    "captures.take(",
    "captures.take_layer(",
    "captures.take_if_there(",
    "captures.link_disk(",
    "captures.hand_out(",
    "captures.publish",
    "captures.abandon(",
    "captures.hide(",
    "captures.stack",
    "templates.order(",
    "templates.order_variant(",
    "templates.version(",
    "templates.disk_of(",
    "templates.under(",
    "snapshot_report(",
    "keep_layer(",
];

/// Modules of the node that block on purpose.
const BLOCKS: [&str; 27] = [
    "bake/",
    "baker.rs",
    "baker_variants.rs",
    "console.rs",
    "disk_watch.rs",
    "effects/captures.rs",
    // Reading and writing block; who follows a log is kept from both.
    "egress/log.rs",
    "egress/process.rs",
    "egress/spool_files.rs",
    "egress/spool_tests.rs",
    "glimpse.rs",
    // Kernel files, and free space, which the kernel has at hand.
    "host_resources.rs",
    "housekeeping.rs",
    "identity.rs",
    "journal.rs",
    "journal_tests.rs",
    // Before the node serves anybody.
    "reconcile.rs",
    "reserve.rs",
    // Kernel files, which have no disk under them.
    "sandbox/activity.rs",
    "sandbox/layer.rs",
    "slots.rs",
    "snapshot_reports.rs",
    "volume_tools.rs",
    "volumes.rs",
    "template_list_tests.rs",
    "volumes_tests.rs",
    "written.rs",
];

fn sources(of: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of);
    let named = |path: PathBuf| {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        (name, std::fs::read_to_string(&path).unwrap())
    };
    let found: Vec<_> = rust_files(&root).unwrap().into_iter().map(named).collect();
    assert!(found.len() > 20, "the walk found only {}", found.len());
    found
}

/// The lines of what is no test and no comment, with each chain of calls on one line.
fn product(text: &str) -> Vec<String> {
    let tests = text.find("#[cfg(test)]").unwrap_or(text.len());
    let mut lines: Vec<String> = Vec::new();
    for line in text[..tests].lines() {
        let code = line.split("//").next().unwrap_or_default();
        match lines.last_mut() {
            Some(last) if code.trim_start().starts_with('.') => last.push_str(code.trim()),
            _ => lines.push(code.to_owned()),
        }
    }
    lines
}

/// Whether `code` has this word of ours, and not the end of a longer one.
fn has(code: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let begins = word.starts_with(|c: char| !is_part(c));
        begins || !code[..at].ends_with(is_part)
    })
}

/// Whether a line stands in a closure that is moved somewhere.
fn is_moved(lines: &[String], index: usize) -> bool {
    if lines[index].contains("move |") {
        return true;
    }
    let mut closed = 0;
    for line in lines[..index].iter().rev() {
        let (opens, closes) = (line.matches('{').count(), line.matches('}').count());
        if closes >= opens {
            closed += closes - opens;
            continue;
        }
        let open = opens - closes;
        if open > closed {
            if line.contains("move |") {
                return true;
            }
            closed = 0;
        } else {
            closed -= open;
        }
        if line.contains("fn ") {
            return false;
        }
    }
    false
}

/// What blocks where it should not.
fn faults(text: &str) -> Vec<String> {
    let lines = product(text);
    let is_fault = |index: usize| {
        let code = &lines[index];
        let is_declared = code.contains("fn ") || code.trim_start().starts_with("use ");
        let works = FILE_WORK.iter().any(|word| has(code, word));
        let calls = BLOCKING_CALLS.iter().any(|word| has(code, word));
        !is_declared && (works || calls && !is_moved(&lines, index))
    };
    let found = (0..lines.len()).filter(|index| is_fault(*index));
    found.map(|index| lines[index].trim().to_owned()).collect()
}

fn faults_of(of: &str, blocks: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in sources(of) {
        if !blocks.iter().any(|part| name.starts_with(part)) {
            let faults = faults(&text);
            found.extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
        }
    }
    found
}

#[test]
fn nothing_of_the_node_waits_for_a_disk_on_the_runtime() {
    let found = faults_of("crates/node/src", &BLOCKS);
    assert!(found.is_empty(), "these block the runtime: {found:#?}");
    for module in BLOCKS {
        let is_there = |(name, _): &(String, String)| name.starts_with(module);
        assert!(sources("crates/node/src").iter().any(is_there), "{module}");
    }
}

#[test]
fn nothing_of_control_waits_for_a_disk_on_the_runtime() {
    // Called once, when the database is opened, on a thread of its own; and one that moves its work to
    // such threads.
    let blocks = ["store/request_hash.rs", "build/spool.rs"];
    let found = faults_of("crates/control/src", &blocks);
    assert!(found.is_empty(), "these block the runtime: {found:#?}");
}

/// One place syncs, so that a test can make the disk slow.
#[test]
fn every_sync_of_the_host_goes_through_one_place() {
    let mut found = Vec::new();
    for of in ["crates/node/src", "crates/snapshots/src", "crates/host/src"] {
        for (name, text) in sources(of) {
            if name == "files/sync.rs" {
                continue;
            }
            for line in product(&text) {
                let words = ["fsync(", "fdatasync(", "syncfs(", "sync_all(", "sync_data("];
                if words.iter().any(|word| line.contains(word)) {
                    found.push(format!("{of}/{name}: {}", line.trim()));
                }
            }
        }
    }
    assert!(found.is_empty(), "syncs elsewhere: {found:#?}");
}

#[test]
fn what_blocks_is_found() {
    let bad = "async fn f() {\n    self.parts\n        .journal\n        .write(&record)?;\n}\n";
    assert_eq!(faults(bad), ["self.parts.journal.write(&record)?;"]);
    let bad = "async fn f() {\n    let there = path.exists();\n}\n";
    assert_eq!(faults(bad), ["let there = path.exists();"]);
    let bad = "fn f() {\n    off(move || {\n        g();\n    });\n    volumes.attach(a)?;\n}\n";
    assert_eq!(faults(bad), ["volumes.attach(a)?;"]);
    let good = "async fn f() {\n    disk.run(move || journal.write(&record)).await?;\n}\n";
    assert!(faults(good).is_empty());
    let good = "fn f() {\n    let g = move || {\n        if a {\n            b();\n        }\n        \
                captures.take(c)\n    };\n}\n";
    assert!(faults(good).is_empty());
}
