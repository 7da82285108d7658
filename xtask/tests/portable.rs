//! The command line and its client are for Linux and macOS: what only Linux has stands in one file.

use std::path::{Path, PathBuf};

use xtask::source::rust_files;

/// The one file that may ask which system it runs on.
const PLATFORM: &str = "crates/client/src/platform.rs";

/// Names of what other systems do not have.
const LINUX_ONLY: &[&str] = &[
    "target_os",
    "os::linux",
    "libc::",
    "rustix::mount",
    "rustix::thread",
    "rustix::io_uring",
    "rustix::system",
    "epoll",
    "inotify",
    "memfd",
    "signalfd",
    "eventfd",
    "timerfd",
    "pidfd",
    "prctl",
    "openat2",
    "renameat",
    "RenameFlags",
    "O_TMPFILE",
    "OFlags::TMPFILE",
    "OFlags::PATH",
    "copy_file_range",
    "sendfile",
    "splice(",
    "peer_cred",
    "user_timeout",
    "abstract_addr",
    "\"/proc/",
    "\"/sys/",
    "\"/dev/pts",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn what_only_linux_has_stands_in_one_file() {
    let folders = ["bin/dayfly/src", "crates/client/src"];
    let files = folders.map(|folder| rust_files(&root().join(folder)).unwrap());
    let files = files.concat();
    assert!(
        files.len() > 60,
        "the walk found only {} files",
        files.len()
    );
    let mut faults = Vec::new();
    for path in files.iter().filter(|path| !path.ends_with(PLATFORM)) {
        let text = std::fs::read_to_string(path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let names = LINUX_ONLY.iter().filter(|name| code.contains(**name));
            let place = path.strip_prefix(root()).unwrap().display();
            faults.extend(names.map(|name| format!("{place}:{}: {name}", number + 1)));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    let platform = std::fs::read_to_string(root().join(PLATFORM)).unwrap();
    assert!(
        platform.contains("not(target_os"),
        "others have their own way"
    );
}
