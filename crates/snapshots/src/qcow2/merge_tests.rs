//! Merged layers against what QEMU sees in the stack, and against its own checker.
//!
//! Skipped where QEMU's tools are not installed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proptest::prelude::*;

use super::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

pub(crate) fn tools_are_missing() -> bool {
    let missing =
        !Path::new("/usr/bin/qemu-img").exists() || !Path::new("/usr/bin/qemu-io").exists();
    if missing {
        println!("skipped: no qemu-img or qemu-io");
    }
    missing
}

fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    output
}

/// A stack as the engine is told of it: no layer names the one below.
fn description(base: Option<&Path>, layers: &[PathBuf]) -> String {
    let mut below = base.map(
        |path| serde_json::json!({"driver": "raw", "file": {"driver": "file", "filename": path}}),
    );
    for path in layers {
        let file = serde_json::json!({"driver": "file", "filename": path, "discard": "unmap"});
        below = Some(serde_json::json!({
            "driver": "qcow2", "discard": "unmap", "file": file, "backing": below,
        }));
    }
    format!("json:{}", below.unwrap())
}

/// Makes an empty layer, as the engine does.
pub(crate) fn create(path: &Path, bytes: u64) {
    let path = path.to_str().unwrap();
    run(
        "qemu-img",
        &["create", "-q", "-f", "qcow2", path, &bytes.to_string()],
    );
}

/// Runs commands of `qemu-io` on the topmost layer.
pub(crate) fn write(base: Option<&Path>, layers: &[PathBuf], commands: &[String]) {
    let description = description(base, layers);
    let mut arguments = vec!["-t", "unsafe"];
    for command in commands {
        arguments.extend(["-c", command]);
    }
    arguments.push(&description);
    if !commands.is_empty() {
        run("qemu-io", &arguments);
    }
}

/// What a guest would see.
pub(crate) fn seen(base: Option<&Path>, layers: &[PathBuf]) -> Vec<u8> {
    let target = tempfile::NamedTempFile::new().unwrap();
    let description = description(base, layers);
    let path = target.path().to_str().unwrap();
    run(
        "qemu-img",
        &["convert", "-t", "unsafe", "-O", "raw", &description, path],
    );
    std::fs::read(target.path()).unwrap()
}

/// QEMU's own checker finds neither errors nor leaks.
pub(crate) fn assert_sound(path: &Path) {
    let output = run(
        "qemu-img",
        &["check", "-f", "qcow2", path.to_str().unwrap()],
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("No errors were found"), "{text}");
}

pub(crate) fn base_of(path: &Path, byte: u8, bytes: u64) {
    std::fs::write(path, vec![byte; usize::try_from(bytes).unwrap()]).unwrap();
}

fn merge_paths(layers: &[PathBuf], target: &Path) -> Merged {
    let files: Vec<File> = layers
        .iter()
        .map(|path| File::open(path).unwrap())
        .collect();
    merge_layers(&files, &File::create_new(target).unwrap()).unwrap()
}

/// One thing that a guest does to its disk.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    kind: u8,
    byte: u8,
    offset: u64,
    length: u64,
}

impl Operation {
    /// For a disk of this size.
    pub(crate) fn command(&self, size: u64) -> String {
        let offset = self.offset % size;
        let length = self.length.min(size - offset);
        let byte = self.byte;
        match self.kind {
            0 | 1 => format!("write -q -P {byte} {offset} {length}"),
            2 => format!("write -q -z {offset} {length}"),
            3 => format!("write -q -z -u {offset} {length}"),
            _ => format!("discard -q {offset} {length}"),
        }
    }
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    // Sometimes whole clusters, so that zeros and discards reach the cluster map.
    let unit = prop_oneof![Just(4 * KIB), Just(64 * KIB)];
    (0u8..5, any::<u8>(), unit, 0u64..512, 1u64..40).prop_map(
        |(kind, byte, unit, offset, length)| Operation {
            kind,
            byte,
            offset: offset * unit,
            length: length * unit,
        },
    )
}

#[test]
fn zeros_hide_and_open_clusters_show_what_lies_below() {
    if tools_are_missing() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    base_of(&at("base"), 9, 4 * MIB);
    let layers = [at("0"), at("1"), at("2")];
    let command = |text: &str| text.to_owned();
    for (number, commands) in [
        vec![command("write -q -P 1 0 256k")],
        vec![
            command("write -q -z 64k 64k"),
            command("discard -q 512k 64k"),
        ],
        vec![
            command("write -q -P 3 128k 64k"),
            command("write -q -P 0 192k 64k"),
        ],
    ]
    .iter()
    .enumerate()
    {
        create(&layers[number], 4 * MIB);
        write(Some(&at("base")), &layers[..=number], commands);
    }
    let merged = merge_paths(&layers, &at("merged"));
    // Stored zeros, zeros by flag, and a discard: all of them hide.
    assert_eq!((merged.data_clusters, merged.zero_clusters), (2, 3));
    assert_sound(&at("merged"));
    let content = seen(Some(&at("base")), &[at("merged")]);
    let cluster = |index: usize| content[index * 65536];
    assert_eq!([0, 1, 2, 3, 4, 8].map(cluster), [1, 0, 3, 0, 9, 0]);
}

#[test]
fn layers_with_many_tables_are_merged() {
    if tools_are_missing() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let layers = [directory.path().join("0"), directory.path().join("1")];
    for (number, commands) in [
        ["write -q -P 1 0 1M", "write -q -P 2 2500M 1M"],
        ["write -q -P 3 700M 64k", "write -q -z 2500M 64k"],
    ]
    .iter()
    .enumerate()
    {
        create(&layers[number], 3000 * MIB);
        let commands = commands.map(str::to_owned);
        write(None, &layers[..=number], &commands);
    }
    let target = directory.path().join("merged");
    let merged = merge_paths(&layers, &target);
    assert_eq!((merged.data_clusters, merged.zero_clusters), (32, 1));
    assert_sound(&target);
    let (stack, single) = (
        description(None, &layers),
        description(None, std::slice::from_ref(&target)),
    );
    run("qemu-img", &["compare", &stack, &single]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn merged_layer_is_what_qemu_sees_in_the_stack(
        layers in proptest::collection::vec(
            (proptest::collection::vec(operation(), 0..7), 0u64..3, any::<bool>()), 1..5),
    ) {
        if tools_are_missing() {
            return Ok(());
        }
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        base_of(&at("base"), 0x55, 2 * MIB);
        let base = at("base");
        let mut paths = Vec::new();
        let mut size = 2 * MIB;
        for (number, (operations, growth, odd)) in layers.iter().enumerate() {
            paths.push(at(&number.to_string()));
            create(&paths[number], size);
            // Disks only grow, and need not end with a cluster.
            size += growth * MIB + u64::from(*odd) * 12 * KIB;
            let mut commands = vec![format!("truncate {size}")];
            commands.extend(operations.iter().map(|operation| operation.command(size)));
            write(Some(&base), &paths, &commands);
        }
        let target = at("merged");
        let merged = merge_paths(&paths, &target);
        prop_assert_eq!(merged.disk_bytes, size);
        assert_sound(&target);
        let target = [target];
        prop_assert!(seen(Some(&base), &paths) == seen(Some(&base), &target));
        // On another base, clusters that are open must be the same ones.
        base_of(&at("other"), 0xee, 2 * MIB);
        let other = at("other");
        prop_assert!(seen(Some(&other), &paths) == seen(Some(&other), &target));
    }
}
