//! Shape of the sources: file lengths, where unsafe code may stand, words that we avoid.
#![expect(
    clippy::unwrap_used,
    reason = "a check that cannot read the sources must fail"
)]

use std::path::{Path, PathBuf};

use xtask::source::rust_files;

/// A file longer than this is split.
const FILE_LINES_MAX: usize = 600;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn sources() -> Vec<PathBuf> {
    let folders = ["crates", "bin", "tests", "xtask", "fuzz"];
    let found = folders.map(|folder| rust_files(&root().join(folder)).unwrap());
    let found = found.concat();
    assert!(
        found.len() > 50,
        "the walk found only {} files",
        found.len()
    );
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

#[test]
fn no_file_is_longer_than_it_should_be() {
    let mut faults = Vec::new();
    for path in sources() {
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        // One list, as long as there are limits: that they are in one file is worth more.
        let is_list = relative(&path) == "crates/types/src/limits.rs";
        if lines > FILE_LINES_MAX && !is_list {
            faults.push(format!("{}: {lines} lines", relative(&path)));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn unsafe_code_stands_only_in_the_three_sys_modules() {
    for path in sources() {
        let name = relative(&path);
        let may = name.starts_with("crates/host/src/sys/")
            || name.starts_with("bin/dayfly-memory/src/sys/")
            || name.starts_with("bin/dayfly-guest/src/sys/");
        if may || name == "xtask/tests/tidy.rs" {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let uses = text.lines().any(|line| {
            let code = line.split("//").next().unwrap_or("");
            code.contains("unsafe {") || code.contains("unsafe fn") || code.contains("unsafe impl")
        });
        assert!(!uses, "{name} holds unsafe code");
    }
}

#[test]
fn every_library_and_program_says_what_it_is_for() {
    for path in sources() {
        let name = relative(&path);
        if name.ends_with("src/lib.rs") || name.ends_with("src/main.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(
                text.starts_with("//!"),
                "{name} has no module documentation"
            );
        }
    }
}

#[test]
fn no_type_is_named_after_a_shapeless_role() {
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines() {
            let is_item = ["struct ", "enum ", "trait "]
                .iter()
                .any(|word| line.contains(word));
            let named = ["Manager", "Util", "Helper"].iter().any(|word| {
                line.split(|c: char| !c.is_alphanumeric())
                    .any(|part| part.ends_with(word))
            });
            assert!(!(is_item && named), "{}: {line}", relative(&path));
        }
    }
}

#[test]
fn no_public_type_name_is_declared_twice() {
    let figures = xtask::figures::Figures::of(root()).unwrap();
    let twice: Vec<_> = figures.declared_twice().collect();
    assert!(twice.is_empty(), "{twice:#?}");
}
