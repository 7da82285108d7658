//! Plain facts about a host, for deciding whether it is fit. The deciding is done elsewhere.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cgroup::{self, CgroupVersion};
use crate::files::{DiskSpace, disk_space, reflink_supported};
use crate::kernel_switches;
use crate::memory::{HostMemory, host_memory};
use crate::netns::in_fresh_namespace;
use crate::process::{Pidfd, ProcessIdentity};
use crate::sys::clock_status;

/// How long the packet filter's program may take to answer.
const NFT_LIMIT: Duration = Duration::from_secs(5);
/// Named outright: the search path of a daemon often lacks the second half of these.
const NFT_PLACES: [&str; 4] = [
    "/usr/sbin/nft",
    "/usr/bin/nft",
    "/sbin/nft",
    "/usr/local/sbin/nft",
];
const NFT_WORDS_MAX: u64 = 4096;

/// Everything that is found out. What cannot be read is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    pub is_root: bool,
    pub kernel_release: String,
    pub architecture: String,
    pub processors: usize,
    pub cgroup: CgroupFacts,
    pub nftables: NftablesFacts,
    /// Whether files in the probed directory can share blocks.
    pub reflink: Option<bool>,
    pub tun: DeviceFacts,
    /// Only whether the device opens: whether a guest runs on it takes running one.
    pub kvm: DeviceFacts,
    pub memory: Option<HostMemory>,
    pub disk: Option<DiskSpace>,
    /// Whether the kernel merges equal pages of different processes.
    pub same_page_merging: Option<bool>,
    /// Whether two threads share a core.
    pub hyperthreading: Option<bool>,
    /// Where memory may be written to, when that is known.
    #[serde(default)]
    pub swap_devices: Option<Vec<String>>,
    /// Faults of the processor that nothing is done about.
    #[serde(default)]
    pub unmitigated_faults: Vec<String>,
    /// Whether something keeps the wall clock right.
    #[serde(default)]
    pub clock_is_synchronised: Option<bool>,
}

/// Which control groups there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupFacts {
    /// Absent when the controllers that are needed are not there.
    pub version: Option<CgroupVersion>,
    pub problem: Option<String>,
}

/// Whether the packet filter works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NftablesFacts {
    /// What the program says of itself; absent when there is none.
    pub program: Option<String>,
    /// Whether the kernel took a table in a namespace that was made for the trial.
    pub works: bool,
    pub problem: Option<String>,
}

/// A device node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    pub exists: bool,
    pub opens: bool,
}

/// The release of the running kernel.
#[must_use]
pub fn kernel_release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

/// Finds out all facts; those about files are about the file system of `directory`.
#[must_use]
pub fn probe_host(directory: &Path) -> HostFacts {
    let system = rustix::system::uname();
    let root = Path::new("/");
    HostFacts {
        is_root: rustix::process::geteuid().is_root(),
        kernel_release: kernel_release(),
        architecture: system.machine().to_string_lossy().into_owned(),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        cgroup: probe_cgroups(),
        nftables: probe_nftables(),
        reflink: reflink_supported(directory).ok(),
        tun: probe_device("/dev/net/tun"),
        kvm: probe_device("/dev/kvm"),
        memory: host_memory().ok(),
        disk: disk_space(directory).ok(),
        same_page_merging: kernel_switches::same_page_merging(root),
        hyperthreading: kernel_switches::hyperthreading(root),
        swap_devices: kernel_switches::swap_devices(root),
        unmitigated_faults: kernel_switches::unmitigated_faults(root),
        clock_is_synchronised: clock_status().ok().map(is_synchronised),
    }
}

fn probe_cgroups() -> CgroupFacts {
    match cgroup::detect_version() {
        Ok(version) => CgroupFacts {
            version: Some(version),
            problem: None,
        },
        Err(error) => CgroupFacts {
            version: None,
            problem: Some(error.to_string()),
        },
    }
}

fn probe_device(path: &str) -> DeviceFacts {
    let is_device = |status: fs::Metadata| status.file_type().is_char_device();
    DeviceFacts {
        exists: fs::metadata(path).is_ok_and(is_device),
        opens: fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .is_ok(),
    }
}

/// The kernel takes its clock for wrong until a program that keeps it says otherwise.
const fn is_synchronised(clock_status: i32) -> bool {
    clock_status & libc::STA_UNSYNC == 0
}

fn probe_nftables() -> NftablesFacts {
    let program = match run_nft(&["--version"]) {
        Ok(words) => Some(words.trim().to_owned()),
        Err(error) => {
            return NftablesFacts {
                program: None,
                works: false,
                problem: Some(error.to_string()),
            };
        }
    };
    // In a namespace of its own, so that the host's rules are neither read nor touched.
    let trial = in_fresh_namespace(|| run_nft(&["add", "table", "inet", "probe"]));
    match trial.flatten() {
        Ok(_) => NftablesFacts {
            program,
            works: true,
            problem: None,
        },
        Err(error) => NftablesFacts {
            program,
            works: false,
            problem: Some(error.to_string()),
        },
    }
}

/// Runs the packet filter's program in the network namespace of the calling thread.
fn run_nft(arguments: &[&str]) -> io::Result<String> {
    let program = NFT_PLACES.iter().find(|place| Path::new(place).exists());
    let mut child = Command::new(program.ok_or(io::ErrorKind::NotFound)?)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    // Not reaped before `wait` below, so the pid is its own until then.
    let handle = ProcessIdentity::of(pid)
        .and_then(Pidfd::open)
        .map_err(io::Error::other)?;
    if !handle.wait_blocking(NFT_LIMIT) {
        child.kill()?;
        child.wait()?;
        return Err(io::ErrorKind::TimedOut.into());
    }
    let status = child.wait()?;
    let mut words = String::new();
    if let Some(output) = child.stdout.take() {
        output.take(NFT_WORDS_MAX).read_to_string(&mut words)?;
    }
    if status.success() {
        return Ok(words);
    }
    let mut problem = String::new();
    if let Some(output) = child.stderr.take() {
        output.take(NFT_WORDS_MAX).read_to_string(&mut problem)?;
    }
    Err(io::Error::other(problem.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_this_host_can_be_read() {
        let facts = probe_host(&std::env::temp_dir());
        assert!(!facts.kernel_release.is_empty());
        assert!(facts.memory.is_some() && facts.disk.is_some());
        assert!(facts.processors > 0);
        assert!(facts.clock_is_synchronised.is_some());
        assert_eq!(facts.nftables.works, facts.nftables.problem.is_none());
        let json = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<HostFacts>(&json).unwrap(), facts);
    }

    #[test]
    fn a_clock_counts_as_right_only_when_something_keeps_it() {
        assert!(is_synchronised(libc::STA_PLL));
        assert!(!is_synchronised(libc::STA_PLL | libc::STA_UNSYNC));
    }

    #[test]
    fn a_device_that_is_not_there_neither_exists_nor_opens() {
        let absent = DeviceFacts {
            exists: false,
            opens: false,
        };
        assert_eq!(probe_device("/dev/no-such-device"), absent);
    }
}
