//! Changes as the layers of a root file system show them.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dayfly_guest_client::AgentClient;
use dayfly_guest_proto::GuestErrorCode;
use dayfly_types::SandboxId;
use dayfly_types::file::ChangeKind;
use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use rustix::time::{ClockId, clock_gettime};

use crate::files::code;
use crate::support::{Guest, identity, within};

/// Two directories that look like the disks of a guest.
struct Layers {
    directory: tempfile::TempDir,
}

impl Layers {
    /// `None` when this process may not make the marks of an overlay.
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        for place in [
            "base/etc",
            "base/opt/app",
            "writable/upper/etc",
            "writable/work",
        ] {
            std::fs::create_dir_all(directory.path().join(place)).unwrap();
        }
        let layers = Self { directory };
        layers.remove("probe").ok()?;
        std::fs::remove_file(layers.upper("probe")).unwrap();
        Some(layers)
    }

    fn base(&self, path: &str) -> PathBuf {
        self.directory.path().join("base").join(path)
    }

    fn upper(&self, path: &str) -> PathBuf {
        self.directory.path().join("writable/upper").join(path)
    }

    /// The overlay's mark for something that is gone.
    fn remove(&self, path: &str) -> rustix::io::Result<()> {
        let kind = FileType::CharacterDevice;
        mknodat(CWD, self.upper(path), kind, Mode::empty(), 0)
    }

    fn write(path: PathBuf) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
}

async fn changes(
    client: &AgentClient,
    path: &str,
    since: Option<u64>,
) -> BTreeMap<String, ChangeKind> {
    let mut lines = client.list_changes(path, since).await.unwrap();
    let mut found = BTreeMap::new();
    while let Some(change) = within(lines.next()).await.unwrap() {
        found.insert(change.path, change.kind);
    }
    found
}

/// Waits until the kernel's clock of files has passed every change so far, and gives it.
fn wait_for_a_later_time(directory: &Path) -> u64 {
    let place = directory.join("clock");
    std::fs::write(&place, "").unwrap();
    let metadata = std::fs::metadata(&place).unwrap();
    let changed = metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec();
    loop {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let now = now.tv_sec * 1_000_000_000 + now.tv_nsec;
        if now > changed {
            return u64::try_from(now).unwrap();
        }
        std::thread::yield_now();
    }
}

fn map(pairs: &[(&str, ChangeKind)]) -> BTreeMap<String, ChangeKind> {
    let pairs = pairs.iter();
    pairs
        .map(|(path, kind)| ((*path).to_owned(), *kind))
        .collect()
}

#[tokio::test]
async fn changes_are_told_from_what_the_template_had() {
    let Some(layers) = Layers::new() else {
        eprintln!("skipped: this process may not make device nodes");
        return;
    };
    for path in [
        "etc/passwd",
        "etc/motd",
        "opt/app/a",
        "opt/app/b",
        "opt/gone/x",
    ] {
        Layers::write(layers.base(path));
    }
    // Written while the template was made, and by the agent.
    Layers::write(layers.upper("etc/baked"));
    Layers::write(layers.upper("var/baked-too"));
    wait_for_a_later_time(layers.directory.path());
    let guest = Guest::start_in(layers.directory.path());
    let client = guest.connect().await;
    let early = client.list_changes("/", None).await;
    assert_eq!(code(early), GuestErrorCode::WrongState);
    client.identify(identity()).await.unwrap();
    assert_eq!(changes(&client, "/", None).await, BTreeMap::new());

    Layers::write(layers.upper("etc/hosts"));
    Layers::write(layers.upper("var/lib/dayfly/log"));
    Layers::write(layers.upper("etc/passwd"));
    Layers::write(layers.upper("etc/new"));
    Layers::write(layers.upper("workspace/deep/file"));
    std::fs::write(layers.upper("var/baked-too"), "changed").unwrap();
    layers.remove("etc/motd").unwrap();
    std::fs::create_dir(layers.upper("opt")).unwrap();
    layers.remove("opt/gone").unwrap();
    layers.remove("etc/never-was-there").unwrap();
    // A directory that was removed and made anew hides what the template has in it.
    std::fs::create_dir(layers.upper("opt/app")).unwrap();
    Layers::write(layers.upper("opt/app/b"));
    let name = "trusted.overlay.opaque";
    setxattr(layers.upper("opt/app"), name, b"y", XattrFlags::empty()).unwrap();
    use ChangeKind::{Added, Modified, Removed};
    let all = map(&[
        ("/etc/motd", Removed),
        ("/etc/new", Added),
        ("/etc/passwd", Modified),
        ("/opt/app", Modified),
        ("/opt/app/a", Removed),
        ("/opt/app/b", Modified),
        ("/opt/gone", Removed),
        ("/var/baked-too", Modified),
        ("/var/lib", Added),
        ("/workspace", Added),
        ("/workspace/deep", Added),
        ("/workspace/deep/file", Added),
    ]);
    assert_eq!(changes(&client, "/", None).await, all);
    let below = map(&[("/workspace/deep/file", Added)]);
    assert_eq!(changes(&client, "/workspace/deep", None).await, below);
    assert_eq!(changes(&client, "/nowhere", None).await, BTreeMap::new());
}

#[tokio::test]
async fn a_moment_and_another_sandbox_begin_anew() {
    let Some(layers) = Layers::new() else {
        eprintln!("skipped: this process may not make device nodes");
        return;
    };
    let guest = Guest::start_in(layers.directory.path());
    let client = guest.connect().await;
    client.identify(identity()).await.unwrap();
    Layers::write(layers.upper("first"));
    let moment = wait_for_a_later_time(layers.directory.path());
    Layers::write(layers.upper("second"));
    use ChangeKind::{Added, Modified};
    let both = map(&[("/first", Added), ("/second", Added)]);
    assert_eq!(changes(&client, "/", None).await, both);
    let later = map(&[("/second", Added)]);
    assert_eq!(changes(&client, "/", Some(moment)).await, later);
    std::fs::write(layers.upper("first"), "again").unwrap();
    let later = map(&[("/first", Modified), ("/second", Added)]);
    assert_eq!(changes(&client, "/", Some(moment)).await, later);
    // The same sandbox again, as after a sleep, keeps its beginning; another has its own.
    client.identify(identity()).await.unwrap();
    assert_eq!(changes(&client, "/", None).await, both);
    wait_for_a_later_time(layers.directory.path());
    let mut other = identity();
    other.sandbox_id = SandboxId::parse("sb-local-another").unwrap();
    client.identify(other).await.unwrap();
    assert_eq!(changes(&client, "/", None).await, BTreeMap::new());
}
