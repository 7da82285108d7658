//! What this driver says about itself.

use dayfly_host::processor::processor_digest;
use dayfly_vmm::{Accelerator, Capabilities, CaptureKind, EngineKind};

use crate::driver::QemuConfig;

/// The processor model on the command line.
///
/// Under emulation `max` is fixed by the engine's version, which a snapshot records anyway. Under
/// KVM `host` gives the guest all that the processor has; snapshots then fit that processor only.
/// Without the two features that promise quick string instructions, which emulation executes byte
/// by byte, the guest's kernel copies memory ten times faster.
pub(crate) const fn processor_model(accelerator: Accelerator) -> &'static str {
    match accelerator {
        Accelerator::Kvm => "host",
        Accelerator::Tcg => "max,-erms,-fsrm",
    }
}

/// Collects the facts. `processor_table` is the text of `/proc/cpuinfo`.
#[must_use]
pub(crate) fn capabilities(config: &QemuConfig, processor_table: &str) -> Capabilities {
    let accelerator = config.accelerator;
    let model = processor_model(accelerator);
    let cpu_model = match accelerator {
        // Two hosts that both say `host` may differ, and two processors of one name as well.
        Accelerator::Kvm => {
            let (name, digest) = (host_processor(processor_table), processor_digest());
            format!("{model}:{name}:{digest}")
        }
        Accelerator::Tcg => model.to_owned(),
    };
    Capabilities {
        engine: EngineKind::Qemu,
        engine_version: config.version.to_string(),
        build: config.build.clone(),
        accelerator,
        cpu_model,
        // A booted machine's memory is in its file, so its capture is device state alone. A
        // restored machine maps memory privately, and its capture has what differs besides.
        captures: vec![CaptureKind::DeviceOnly, CaptureKind::Diff],
        can_park: true,
    }
}

fn host_processor(table: &str) -> &str {
    let name = table.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then_some(value.trim())
    });
    name.unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::EngineVersion;

    const TABLE: &str = "processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\nflags\t: a b\n";

    fn of(accelerator: Accelerator) -> Capabilities {
        let version = EngineVersion {
            major: 10,
            minor: 0,
            micro: 2,
        };
        capabilities(&QemuConfig::installed(version, accelerator), TABLE)
    }

    #[test]
    fn hardware_snapshots_name_the_processor_they_were_made_on() {
        let found = of(Accelerator::Kvm);
        let digest = processor_digest();
        assert_eq!(found.cpu_model, format!("host:Some CPU @ 2.0GHz:{digest}"));
        assert_eq!(found.engine_version, "10.0.2");
    }

    #[test]
    fn emulated_snapshots_do_not_depend_on_the_host_processor() {
        assert_eq!(of(Accelerator::Tcg).cpu_model, "max,-erms,-fsrm");
    }
}
