//! A place where the program makes one disk, watched.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use dayfly_types::container_image::{ImageJob, ImageJobOrigin, ImageReport, file_names};

use crate::image::{Layer, layout};
use crate::trace::Trace;

const TRACER: &str = "strace";
/// Nobody's.
const UID: u32 = 54_321;
/// Room for contents, unless a test says otherwise.
pub(crate) const ROOM: u64 = 256 << 20;

/// The directory of one run of the program, and what lies beside it.
#[derive(Debug)]
pub(crate) struct Workshop {
    place: tempfile::TempDir,
    root: PathBuf,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) report: ImageReport,
    pub(crate) trace: Trace,
    program: PathBuf,
}

impl Workshop {
    /// None where there is nothing to watch with.
    pub(crate) fn new() -> Option<Self> {
        if Command::new(TRACER).arg("--version").output().is_err() {
            println!("skipped: {TRACER} is not installed");
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let workshop = Self { place, root };
        let mode = fs::Permissions::from_mode(0o711);
        fs::set_permissions(workshop.place.path(), mode).unwrap();
        for name in ["run", "trace", "outside"] {
            fs::create_dir(workshop.root.join(name)).unwrap();
        }
        let program = workshop.program();
        fs::copy(env!("CARGO_BIN_EXE_dayfly-image"), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        // For everybody: what is not opened there is not opened for want of a right.
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(workshop.outside(), open).unwrap();
        Some(workshop)
    }

    fn program(&self) -> PathBuf {
        self.root.join("dayfly-image")
    }

    /// The program's own directory.
    pub(crate) fn run_directory(&self) -> PathBuf {
        self.root.join("run")
    }

    /// A directory that images try to reach.
    pub(crate) fn outside(&self) -> PathBuf {
        self.root.join("outside")
    }

    pub(crate) fn disk(&self) -> PathBuf {
        self.run_directory().join(file_names::DISK)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.run_directory().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn write_layout(&self, files: &[(String, Vec<u8>)]) {
        for (name, bytes) in files {
            self.write(&format!("{}/{name}", file_names::LAYOUT), bytes);
        }
    }

    pub(crate) fn write_job(&self, origin: ImageJobOrigin, disk_bytes: u64) {
        let job = ImageJob { origin, disk_bytes };
        let text = serde_json::to_vec(&job).unwrap();
        self.write(file_names::JOB, &text);
    }

    /// Makes a disk of these layers.
    pub(crate) fn run_layers(&self, layers: &[Layer]) -> Outcome {
        self.run_layout(&layout(layers), ROOM)
    }

    pub(crate) fn run_layout(&self, files: &[(String, Vec<u8>)], room: u64) -> Outcome {
        self.write_layout(files);
        self.write_job(ImageJobOrigin::Layout { tag: None }, room);
        self.run()
    }

    pub(crate) fn run_archive(&self, bytes: &[u8]) -> Outcome {
        self.write(file_names::ARCHIVE, bytes);
        self.write_job(ImageJobOrigin::Archive { tag: None }, ROOM);
        self.run()
    }

    /// Runs the program on what was written, and reads what it says at its end.
    pub(crate) fn run(&self) -> Outcome {
        let program = self.program();
        let (said, trace) = self.watch(&[program.to_str().unwrap()]);
        let last = said.lines().last().unwrap_or_default();
        let report = serde_json::from_str(last);
        Outcome {
            report: report.unwrap_or_else(|error| panic!("{error}: {said:?}")),
            trace,
            program,
        }
    }

    /// Runs any program in the directory, as nobody, and gives its output and its calls.
    pub(crate) fn watch(&self, words: &[&str]) -> (String, Trace) {
        let log = self.root.join("trace/log");
        let mut command = Command::new(TRACER);
        command
            .args([
                "-f",
                "-qq",
                "-y",
                "-s",
                "8192",
                "-e",
                "trace=%file,%network",
                "-o",
            ])
            .arg(&log)
            .args(words)
            .env_clear()
            .current_dir(self.run_directory());
        if rustix::process::geteuid().is_root() {
            give(&self.run_directory());
            give(&self.root.join("trace"));
            command.uid(UID).gid(UID);
        }
        let output = command.output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(complaint.is_empty(), "{complaint}");
        let trace = Trace::new(fs::read_to_string(&log).unwrap(), self.run_directory());
        (String::from_utf8(output.stdout).unwrap(), trace)
    }
}

/// Everything in a directory becomes nobody's.
fn give(path: &Path) {
    std::os::unix::fs::lchown(path, Some(UID), Some(UID)).unwrap();
    if path.is_symlink() || !path.is_dir() {
        return;
    }
    chown(path, Some(UID), Some(UID)).unwrap();
    for entry in fs::read_dir(path).unwrap() {
        give(&entry.unwrap().path());
    }
}

impl Outcome {
    pub(crate) fn outside(&self) -> Vec<PathBuf> {
        self.trace.outside(&self.program)
    }

    /// Nothing was touched that is not the program's own, nothing was run or made a node of, and
    /// nobody was spoken to.
    pub(crate) fn assert_contained(&self) {
        let outside = self.outside();
        assert!(outside.is_empty(), "{outside:?}");
        let other = [
            "mknod",
            "mknodat",
            "symlink",
            "symlinkat",
            "link",
            "linkat",
            "mount",
            "chroot",
        ];
        assert_eq!(self.trace.count(&other), 0);
        assert_eq!(
            self.trace.count(&["execve", "execveat"]),
            1,
            "its own start"
        );
        let spoken = self.trace.network();
        assert!(spoken.is_empty(), "{spoken:?}");
    }

    /// Refused for this reason.
    pub(crate) fn assert_refused(&self, reason: &str) {
        match &self.report {
            ImageReport::Failed { reason: found } => {
                assert!(found.contains(reason), "{found}");
            }
            ImageReport::Made(_) | ImageReport::Progress { .. } => panic!("{:?}", self.report),
        }
        self.assert_contained();
    }

    pub(crate) fn assert_made(&self) {
        assert!(
            matches!(self.report, ImageReport::Made(_)),
            "{:?}",
            self.report
        );
        self.assert_contained();
    }
}
