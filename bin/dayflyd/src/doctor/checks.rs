//! The questions, each with what its answer means.

use anyhow::Result;
use dayfly_host::leftovers::Leftover;
use dayfly_host::probe::HostFacts;
use dayfly_vmm::Accelerator;
use dayfly_vmm_qemu::EngineVersion;

use super::{Check, Verdict};

const MEMORY_MIB_MIN: u64 = 2048;
const DISK_MIB_MIN: u64 = 8192;

fn check(name: &'static str, is_ok: bool, otherwise: Verdict, detail: String, hint: &str) -> Check {
    Check {
        name,
        verdict: if is_ok { Verdict::Ok } else { otherwise },
        detail,
        hint: (!is_ok).then(|| hint.to_owned()),
    }
}

/// What the host itself brings.
pub(super) fn of_host(facts: &HostFacts) -> Vec<Check> {
    vec![
        check(
            "root",
            facts.is_root,
            Verdict::Failed,
            if facts.is_root {
                "runs as root"
            } else {
                "does not run as root"
            }
            .to_owned(),
            "start dayflyd as root; only its node process keeps that right",
        ),
        check(
            "cgroups",
            facts.cgroup.version.is_some(),
            Verdict::Failed,
            facts.cgroup.version.map_or_else(
                || facts.cgroup.problem.clone().unwrap_or_default(),
                |version| format!("{version:?}"),
            ),
            "mount the cpu, memory and pids controllers",
        ),
        check(
            "nftables",
            facts.nftables.works,
            Verdict::Warning,
            facts
                .nftables
                .program
                .clone()
                .unwrap_or_else(|| "no nft program".to_owned()),
            "install nftables; networking of sandboxes will need it",
        ),
        check(
            "reflink",
            facts.reflink == Some(true),
            Verdict::Warning,
            match facts.reflink {
                Some(true) => "files can share blocks".to_owned(),
                Some(false) => "files cannot share blocks".to_owned(),
                None => "not known".to_owned(),
            },
            "XFS or btrfs under the data directory makes copies of disks cheaper; nothing needs it",
        ),
        memory(facts),
        disk(facts),
    ]
}

fn memory(facts: &HostFacts) -> Check {
    let mib = facts
        .memory
        .map_or(0, |memory| memory.available_bytes >> 20);
    check(
        "memory",
        mib >= MEMORY_MIB_MIN,
        Verdict::Warning,
        format!("{mib} MiB available"),
        "a sandbox of the base template is promised 768 MiB",
    )
}

fn disk(facts: &HostFacts) -> Check {
    let mib = facts.disk.map_or(0, |disk| disk.available_bytes >> 20);
    check(
        "disk",
        mib >= DISK_MIB_MIN,
        Verdict::Warning,
        format!("{mib} MiB free"),
        "baking the base template takes about 2 GiB for a while",
    )
}

/// Whether there is an engine, and one that is new enough.
pub(super) fn of_engine(version: &Result<EngineVersion>) -> Check {
    let detail = match version {
        Ok(version) => format!("QEMU {version}"),
        Err(error) => format!("{error:#}"),
    };
    let hint = "install qemu-system-x86 and qemu-utils, 8.2 or later";
    check("engine", version.is_ok(), Verdict::Failed, detail, hint)
}

/// What stands between a guest and this host.
pub(super) fn of_accelerator(accelerator: Option<Accelerator>, reason: &str) -> Check {
    let hint = "guests are emulated: good for development, not a boundary between tenants";
    let is_hardware = accelerator == Some(Accelerator::Kvm);
    check(
        "accelerator",
        is_hardware,
        Verdict::Warning,
        reason.to_owned(),
        hint,
    )
}

/// Whether anything belongs to nobody.
pub(super) fn of_leftovers(left: &[Leftover]) -> Check {
    let detail = format!("{} things that belong to no known sandbox", left.len());
    let hint = "start the daemon: it removes what belongs to nobody; report what stays";
    check("leftovers", left.is_empty(), Verdict::Warning, detail, hint)
}
