//! What of a host is not as it should be where others depend on it, each with what to do.

use dayfly_host::probe::HostFacts;
use dayfly_vmm::Accelerator;
use dayfly_vmm_qemu::EngineVersion;
use serde::Serialize;

use super::situation::Situation;

/// The oldest kernel that this was run on. docs/operate.md has the list.
const KERNEL_OLDEST: (u32, u32) = (6, 1);
/// The releases of QEMU that this was run with, by their first two numbers.
const ENGINES_TRIED: &[(u32, u32)] = &[(10, 0)];
/// Less than this is used up by one bake.
const DISK_RESERVE_MIB_MIN: u64 = 1024;

/// One thing that is not fit. The shape is documented; fields are only added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) name: &'static str,
    pub(crate) severity: Severity,
    pub(crate) detail: String,
    /// What to do.
    pub(crate) remedy: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// Somebody can read, take or change what is not theirs.
    Danger,
    /// Something may fail, or nobody has tried it.
    Warning,
}

impl Severity {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Danger => "danger",
            Self::Warning => "warning",
        }
    }
}

fn danger(name: &'static str, detail: impl Into<String>, remedy: &str) -> Finding {
    Finding {
        name,
        severity: Severity::Danger,
        detail: detail.into(),
        remedy: remedy.to_owned(),
    }
}

fn warning(name: &'static str, detail: impl Into<String>, remedy: &str) -> Finding {
    Finding {
        severity: Severity::Warning,
        ..danger(name, detail, remedy)
    }
}

/// Everything that is found, the dangers first.
pub(super) fn findings(
    facts: &HostFacts,
    accelerator: Option<Accelerator>,
    engine: Option<EngineVersion>,
    situation: &Situation,
) -> Vec<Finding> {
    let found = [
        settings(situation),
        listener(situation),
        certificate(situation),
        isolation(accelerator),
        shared_emulation(accelerator, situation),
        page_merging(facts),
        hyperthreading(facts),
        processor_faults(facts),
        swap(facts),
        disk_reserve(facts, situation),
        clock(facts),
        kernel(facts),
        engine_version(engine),
    ];
    let mut found: Vec<Finding> = found.into_iter().flatten().collect();
    found.sort_by_key(|finding| finding.severity != Severity::Danger);
    found
}

fn settings(situation: &Situation) -> Option<Finding> {
    let problem = situation.problem.as_ref()?;
    let remedy = "mend the settings file; `dayflyd config check` says when it is right";
    Some(warning("settings", problem, remedy))
}

fn listener(situation: &Situation) -> Option<Finding> {
    let address = situation.listen?;
    if address.ip().to_canonical().is_loopback() {
        return None;
    }
    let detail =
        format!("the API is served on {address} without TLS; keys cross the network in clear");
    let remedy = "set listen = \"127.0.0.1:7070\", and tls_listen for others, or put a proxy that \
                  speaks TLS in front of it";
    Some(danger("listener", detail, remedy))
}

fn certificate(situation: &Situation) -> Option<Finding> {
    let expiry = situation.certificate.as_ref()?;
    let remedy = "put the next certificate in its place (`dayflyd tls renew`, if this host is its \
                  own authority), then `systemctl reload dayflyd`";
    let until = &expiry.not_after;
    if expiry.is_over() {
        return Some(danger(
            "certificate",
            format!("it was valid until {until}"),
            remedy,
        ));
    }
    let detail = format!(
        "it is valid until {until}, {} days from now",
        expiry.days_left
    );
    expiry
        .is_near()
        .then(|| warning("certificate", detail, remedy))
}

fn isolation(accelerator: Option<Accelerator>) -> Option<Finding> {
    match accelerator {
        Some(Accelerator::Kvm) => None,
        Some(Accelerator::Tcg) => Some(danger(
            "isolation",
            "guests are emulated, which is no boundary between tenants, and slow",
            "use a host with /dev/kvm: bare metal, or a virtual machine with nested \
             virtualisation switched on; load kvm-intel or kvm-amd if it lacks the device",
        )),
        None => Some(warning(
            "isolation",
            "whether guests run on KVM is not known",
            "run `dayflyd doctor --data-dir DIR` with a data directory that has a baked template, \
             and without --no-probe",
        )),
    }
}

fn shared_emulation(accelerator: Option<Accelerator>, situation: &Situation) -> Option<Finding> {
    let is_hardware = accelerator == Some(Accelerator::Kvm);
    (situation.shares_emulation && !is_hardware).then(|| {
        danger(
            "shared emulation",
            "several projects may share this host although its guests are only emulated",
            "remove allow_shared_emulation from the settings",
        )
    })
}

fn page_merging(facts: &HostFacts) -> Option<Finding> {
    (facts.same_page_merging == Some(true)).then(|| {
        danger(
            "page merging",
            "the kernel merges equal pages (KSM), by which one guest can find out what is in another",
            "echo 2 > /sys/kernel/mm/ksm/run, and disable ksm.service and ksmtuned.service",
        )
    })
}

fn hyperthreading(facts: &HostFacts) -> Option<Finding> {
    (facts.hyperthreading == Some(true)).then(|| {
        danger(
            "hyperthreading",
            "two guests can share a core (SMT), and one can measure what the other does",
            "boot with `nosmt`, or echo off > /sys/devices/system/cpu/smt/control, unless all \
             projects of this host trust each other",
        )
    })
}

fn processor_faults(facts: &HostFacts) -> Option<Finding> {
    let faults = &facts.unmitigated_faults;
    (!faults.is_empty()).then(|| {
        danger(
            "processor",
            format!("faults that nothing is done about: {}", faults.join(", ")),
            "install the microcode of the processor's maker and a newer kernel, and do not boot \
             with mitigations=off",
        )
    })
}

fn swap(facts: &HostFacts) -> Option<Finding> {
    let devices = facts.swap_devices.as_ref()?;
    (!devices.is_empty()).then(|| {
        warning(
            "swap",
            format!(
                "memory of guests, secrets and all, may be written to {}, and a guest whose memory \
                 is there answers late",
                devices.join(", ")
            ),
            "swapoff -a, and remove the swap from /etc/fstab; or put it on an encrypted device",
        )
    })
}

fn disk_reserve(facts: &HostFacts, situation: &Situation) -> Option<Finding> {
    let reserve = situation.disk_reserve_mib;
    if let Some(mib) = reserve.filter(|mib| *mib < DISK_RESERVE_MIB_MIN) {
        return Some(warning(
            "disk reserve",
            format!("{mib} MiB of the disk are kept for the host"),
            "remove disk_reserve from the settings, or give it at least 1024",
        ));
    }
    let left = facts.disk?.available_bytes >> 20;
    let wanted = reserve.unwrap_or(DISK_RESERVE_MIB_MIN);
    (left <= wanted).then(|| {
        warning(
            "disk reserve",
            format!(
                "{left} MiB of the disk are free, and {wanted} MiB are to be kept for the host"
            ),
            "give the data directory a larger disk, or delete snapshots, volumes and sandboxes",
        )
    })
}

fn clock(facts: &HostFacts) -> Option<Finding> {
    (facts.clock_is_synchronised == Some(false)).then(|| {
        warning(
            "clock",
            "nothing keeps the wall clock right; keys expire, and the audit record is written, by it",
            "install and enable chrony or systemd-timesyncd",
        )
    })
}

fn kernel(facts: &HostFacts) -> Option<Finding> {
    let release = &facts.kernel_release;
    let (major, minor) = KERNEL_OLDEST;
    let is_old = first_two(release).is_none_or(|found| found < KERNEL_OLDEST);
    is_old.then(|| {
        warning(
            "kernel",
            format!("{release} is older than any that this was run on ({major}.{minor})"),
            "run a kernel of a distribution that is still cared for, as of Debian 12 or later",
        )
    })
}

fn first_two(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|one: char| !one.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    Some((major, numbers.next()?.parse().ok()?))
}

fn engine_version(engine: Option<EngineVersion>) -> Option<Finding> {
    let version = engine?;
    let is_tried = ENGINES_TRIED.contains(&(version.major, version.minor));
    (!is_tried).then(|| {
        warning(
            "engine version",
            format!("this was never run with QEMU {version}"),
            "install QEMU 10.0, as of Debian 13 or of Debian 12 with its backports",
        )
    })
}

#[cfg(test)]
#[path = "production_tests.rs"]
mod tests;
