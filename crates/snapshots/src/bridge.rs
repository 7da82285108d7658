//! The context bridge: the program in a guest that keeps interpreters and their state. Its text is
//! part of this program; a bake puts it into the guest, so that another bridge needs a new bake and
//! no new image.

use serde::Serialize;

/// Where the bridge is in a guest.
pub const DIRECTORY: &str = "/usr/lib/dayfly/contexts";

/// One file of the bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BridgeFile {
    /// Below [`DIRECTORY`].
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! bridge_files {
    ($($name:literal),* $(,)?) => {
        [$(BridgeFile {
            name: $name,
            text: include_str!(concat!("../../../templates/contexts/", $name)),
        }),*]
    };
}

pub const FILES: [BridgeFile; 20] = bridge_files![
    "bridge/__init__.py",
    "bridge/bash_driver.py",
    "bridge/context.py",
    "bridge/driver.py",
    "bridge/events.py",
    "bridge/javascript_driver.py",
    "bridge/limits.py",
    "bridge/main.py",
    "bridge/process.py",
    "bridge/python_driver.py",
    "bridge/registry.py",
    "bridge/run_log.py",
    "bridge/server.py",
    "bridge/spawner.py",
    "contexts.py",
    "launch.py",
    "probe.py",
    "programs/javascript.cjs",
    "programs/kernel.py",
    "programs/zygote.py",
];

/// A digest of all files: another bridge makes another template.
pub(crate) fn digest() -> String {
    crate::digest::hash_json(&FILES)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn add_files(directory: &Path, root: &Path, names: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if path.is_dir() {
                if !name.ends_with("__pycache__") && name != "tests" {
                    add_files(&path, root, names);
                }
            } else {
                names.insert(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_bridge_is_in_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../templates/contexts");
        let mut written = BTreeSet::new();
        add_files(&root, &root, &mut written);
        let known: BTreeSet<String> = FILES.iter().map(|file| file.name.to_owned()).collect();
        assert_eq!(known, written);
    }
}
