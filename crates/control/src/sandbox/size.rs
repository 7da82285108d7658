//! The size of a new sandbox: the template's own, or that of a variant of it.

use dayfly_api::SandboxVariant;
use dayfly_node_api::{TemplateReport, VariantReport};
use dayfly_types::{CpuMillis, MemoryMib, TemplateSize, UnfitSize, Vcpus};

use crate::input::Invalid;

/// The size that a template has by itself.
pub(crate) fn own(template: &TemplateReport) -> TemplateSize {
    TemplateSize {
        memory: template.memory,
        vcpus: template.vcpus,
    }
}

/// As many CPUs as a limit can use.
///
/// # Errors
/// [`Invalid`] for more than a machine can have.
pub(crate) fn vcpus_of(limit: CpuMillis) -> Result<Vcpus, Invalid> {
    let whole = u64::from(limit).div_ceil(1000);
    Vcpus::new(whole).map_err(|error| Invalid::field("cpu", format!("does not fit: {error}")))
}

/// The size of the variant that is asked for. `None`: the template's own will do.
///
/// # Errors
/// [`Invalid`], which says what there could be.
pub(crate) fn variant(
    template: &TemplateReport,
    memory: Option<MemoryMib>,
    vcpus: Option<Vcpus>,
) -> Result<Option<TemplateSize>, Invalid> {
    let own = own(template);
    let size = TemplateSize {
        memory: memory.unwrap_or(own.memory),
        vcpus: vcpus.unwrap_or(own.vcpus),
    };
    own.allows(size).map_err(|unfit| {
        let field = match unfit {
            UnfitSize::LessMemory { .. } | UnfitSize::UnevenMemory { .. } => "memory_mb",
            UnfitSize::FewerProcessors { .. } => "cpu",
        };
        Invalid::field(field, unfit.to_string())
    })?;
    Ok((size != own).then_some(size))
}

/// What the response of a create says of it.
pub(crate) fn present(variant: &VariantReport) -> SandboxVariant {
    SandboxVariant {
        cpu: u32::from(variant.size.vcpus.get()),
        memory_mb: u64::from(variant.size.memory),
        first_use: variant.is_awaited,
        bake_ms: variant.bake_ms,
    }
}
