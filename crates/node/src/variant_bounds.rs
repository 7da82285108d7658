//! Which sizes of templates a host can have at all, so that none is baked for nothing.

use dayfly_core::admission::Demand;
use dayfly_node_api::NodeError;
use dayfly_types::{ErrorCode, TemplateName, TemplateSize};

use crate::capacity::Ledger;
use crate::templates::TemplateSource;

/// Refuses a size that no sandbox could be admitted with, were the host empty.
pub(crate) fn check(
    ledger: &Ledger,
    templates: &dyn TemplateSource,
    name: &TemplateName,
    size: TemplateSize,
) -> Result<(), NodeError> {
    let (capacity, _) = ledger.view();
    let left = capacity
        .memory_total_mib
        .saturating_sub(capacity.memory_reserve_mib);
    let overhead = Demand::of_guest(0, 0).memory_mib;
    if u64::from(size.memory) + overhead > left {
        let most = left.saturating_sub(overhead);
        let text = format!("memory_mb must be at most {most}: this host has no more for sandboxes");
        return Err(NodeError::new(ErrorCode::InvalidRequest, text));
    }
    let own = templates.report(name);
    let own = own.map_or(0, |report| usize::from(report.vcpus.get()));
    let most = ledger.processors().max(own);
    if usize::from(size.vcpus.get()) > most {
        let text = format!("cpu must be at most {most}: this host has no more");
        return Err(NodeError::new(ErrorCode::InvalidRequest, text));
    }
    Ok(())
}
