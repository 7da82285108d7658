//! What this driver says about itself.

use dayfly_vmm::{Accelerator, Capabilities, CaptureKind, EngineKind};

use crate::version::EngineVersion;

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
pub(crate) fn capabilities(
    accelerator: Accelerator,
    version: &EngineVersion,
    processor_table: &str,
) -> Capabilities {
    let model = processor_model(accelerator);
    let cpu_model = match accelerator {
        // Two hosts that both say `host` may differ, so the name of the processor is part of it.
        Accelerator::Kvm => format!("{model}:{}", host_processor(processor_table)),
        Accelerator::Tcg => model.to_owned(),
    };
    Capabilities {
        engine: EngineKind::Qemu,
        engine_version: version.to_string(),
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

    const TABLE: &str = "processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\nflags\t: a b\n";

    fn version() -> EngineVersion {
        EngineVersion {
            major: 10,
            minor: 0,
            micro: 2,
        }
    }

    #[test]
    fn hardware_snapshots_name_the_processor_they_were_made_on() {
        let found = capabilities(Accelerator::Kvm, &version(), TABLE);
        assert_eq!(found.cpu_model, "host:Some CPU @ 2.0GHz");
        assert_eq!(found.engine_version, "10.0.2");
    }

    #[test]
    fn emulated_snapshots_do_not_depend_on_the_host_processor() {
        assert_eq!(
            capabilities(Accelerator::Tcg, &version(), TABLE).cpu_model,
            "max,-erms,-fsrm"
        );
    }
}
