//! Which accelerator works on this host, found out by booting a kernel on it.
//!
//! A device node that opens proves little: there are hosts where `/dev/kvm` makes machines on
//! which no kernel gets anywhere. The caller keeps the answer, keyed by the host's boot, the
//! kernel and the engine's version, because a failed probe takes its whole limit.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use dayfly_vmm::Accelerator;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::capabilities::processor_model;
use crate::counter::counter_khz;
use crate::launch::{accelerator_option, kernel_arguments};

/// A kernel on hardware gets there in a second or two.
pub const PROBE_LIMIT: Duration = Duration::from_secs(10);

/// What a kernel without a root file system says last. Everything but user space has run by then.
const END_OF_BOOT: &str = "Unable to mount root fs";

/// No kernel says this much in a healthy boot.
const CONSOLE_BYTES_MAX: usize = 1 << 20;

/// Enough for any distribution's kernel.
const MEMORY_MIB: u32 = 256;

/// What to boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSpec {
    /// The engine program, as the host sees it. It runs without a jail, on a trusted kernel.
    pub program: PathBuf,
    pub kernel: PathBuf,
    pub limit: Duration,
}

/// Why an accelerator cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error("cannot run {program}")]
    Run { program: PathBuf, source: io::Error },
    #[error("cannot read kernel {kernel}")]
    Kernel { kernel: PathBuf, source: io::Error },
}

/// The accelerator to use, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeOutcome {
    pub accelerator: Accelerator,
    /// For a person.
    pub reason: String,
}

/// Boots the kernel under KVM; software emulation is the answer when it does not come up in time.
///
/// # Errors
/// [`ProbeError`] when there is nothing to boot or to boot it with.
///
/// # Cancel safety
/// Dropping the future ends the trial machine.
pub async fn probe_accelerator(spec: &ProbeSpec) -> Result<ProbeOutcome, ProbeError> {
    tokio::fs::metadata(&spec.kernel)
        .await
        .map_err(|source| ProbeError::Kernel {
            kernel: spec.kernel.clone(),
            source,
        })?;
    let emulated = |reason: String| ProbeOutcome {
        accelerator: Accelerator::Tcg,
        reason,
    };
    let device = Path::new("/dev/kvm");
    let opened = tokio::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(device)
        .await;
    if let Err(error) = opened {
        return Ok(emulated(format!("/dev/kvm cannot be opened: {error}")));
    }
    Ok(match boots(spec, Accelerator::Kvm).await? {
        Boot::Finished => ProbeOutcome {
            accelerator: Accelerator::Kvm,
            reason: "a kernel boots under KVM".to_owned(),
        },
        Boot::Ended => emulated("under KVM the engine ended before the kernel was up".to_owned()),
        Boot::TimedOut => emulated(format!(
            "no kernel came up under KVM within {:?}",
            spec.limit
        )),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Boot {
    Finished,
    Ended,
    TimedOut,
}

async fn boots(spec: &ProbeSpec, accelerator: Accelerator) -> Result<Boot, ProbeError> {
    let failed = |source| ProbeError::Run {
        program: spec.program.clone(),
        source,
    };
    let processor_table = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    // A panic is said aloud also by a quiet kernel.
    let kernel_arguments = kernel_arguments(accelerator, counter_khz(&processor_table));
    let (accelerated, memory) = (accelerator_option(accelerator), format!("{MEMORY_MIB}M"));
    let arguments = [
        &["-nodefaults", "-no-user-config", "-nographic", "-no-reboot"][..],
        &["-M", "microvm,acpi=on", "-bios", "qboot.rom"],
        &["-accel", &accelerated],
        &["-cpu", processor_model(accelerator)],
        &["-m", &memory, "-append", &kernel_arguments],
        &["-chardev", "stdio,id=console,signal=off"],
        &["-serial", "chardev:console"],
    ]
    .concat();
    let kernel = [OsStr::new("-kernel"), spec.kernel.as_os_str()];
    let arguments: Vec<_> = arguments
        .into_iter()
        .map(OsStr::new)
        .chain(kernel)
        .collect();
    let mut child = trial(&spec.program, &arguments).map_err(failed)?;
    let Some(console) = child.stdout.take() else {
        return Ok(Boot::Ended);
    };
    let boot = match timeout(spec.limit, says(console, END_OF_BOOT)).await {
        Ok(true) => Boot::Finished,
        Ok(false) => Boot::Ended,
        Err(_) => Boot::TimedOut,
    };
    child.kill().await.map_err(failed)?;
    Ok(boot)
}

/// Starts a machine that is nobody's: it has no record by which the next start could find and end
/// it, so it ends with the thread that started it.
fn trial(program: &Path, arguments: &[&OsStr]) -> io::Result<Child> {
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL"])
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}

/// Whether the console says `text` before it closes or has said too much.
async fn says(mut console: impl AsyncRead + Unpin, text: &str) -> bool {
    let mut heard = Vec::new();
    let mut chunk = [0; 4096];
    while heard.len() < CONSOLE_BYTES_MAX {
        match console.read(&mut chunk).await {
            Ok(0) | Err(_) => return false,
            Ok(count) => heard.extend_from_slice(&chunk[..count]),
        }
        // The text may lie across the border of two reads.
        let start = heard.len().saturating_sub(chunk.len() + text.len());
        if heard[start..]
            .windows(text.len())
            .any(|window| window == text.as_bytes())
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn text_across_two_reads_is_heard() {
        let console = b"[ 1.0] Kernel panic: Unable to mount ".chain(&b"root fs on x"[..]);
        assert!(says(console, END_OF_BOOT).await);
    }

    #[tokio::test]
    async fn a_console_that_ends_or_floods_is_no_boot() {
        assert!(!says(&b"early"[..], END_OF_BOOT).await);
        assert!(!says(tokio::io::repeat(b'x'), END_OF_BOOT).await);
    }

    #[tokio::test]
    async fn a_kernel_that_boots_is_told_from_one_that_does_not() {
        let Some(assets) = std::env::var_os("DAYFLY_TEST_ASSETS") else {
            println!("skipped: DAYFLY_TEST_ASSETS names no directory with a kernel");
            return;
        };
        let mut spec = ProbeSpec {
            program: "/usr/bin/qemu-system-x86_64".into(),
            kernel: PathBuf::from(assets).join("kernel"),
            // Emulation on a host that also compiles.
            limit: Duration::from_secs(180),
        };
        assert_eq!(
            boots(&spec, Accelerator::Tcg).await.unwrap(),
            Boot::Finished
        );
        spec.limit = Duration::from_millis(200);
        assert_eq!(
            boots(&spec, Accelerator::Tcg).await.unwrap(),
            Boot::TimedOut
        );
        spec.kernel = "/dev/null".into();
        spec.limit = Duration::from_secs(10);
        assert_eq!(boots(&spec, Accelerator::Tcg).await.unwrap(), Boot::Ended);
    }

    /// The kernel sends the signal at the end of the thread that started the trial, which here ends
    /// without a word to it, as in a process that is killed.
    #[test]
    fn a_trial_ends_with_whoever_started_it() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("engine");
        std::fs::write(&program, "#!/bin/sh\necho $$\nexec sleep 1000\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let starter = std::thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().build().unwrap();
            let mut child = runtime.block_on(async { trial(&program, &[]).unwrap() });
            let mut console = child.stdout.take().unwrap();
            let mut line = [0; 16];
            let count = runtime.block_on(console.read(&mut line)).unwrap();
            let pid = String::from_utf8_lossy(&line[..count]).trim().to_owned();
            assert!(Path::new("/proc").join(&pid).exists());
            std::mem::forget((child, console, runtime));
            pid
        });
        let process = Path::new("/proc")
            .join(starter.join().unwrap())
            .join("cmdline");
        let end = std::time::Instant::now() + Duration::from_secs(10);
        // One that nobody collects yet has no command line any more.
        while std::fs::read(&process).is_ok_and(|line| !line.is_empty()) {
            assert!(std::time::Instant::now() < end, "it runs on");
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn a_missing_kernel_is_an_error_and_no_answer() {
        let spec = ProbeSpec {
            program: "/bin/true".into(),
            kernel: "/nonexistent/kernel".into(),
            limit: PROBE_LIMIT,
        };
        assert!(matches!(
            probe_accelerator(&spec).await,
            Err(ProbeError::Kernel { .. })
        ));
    }
}
