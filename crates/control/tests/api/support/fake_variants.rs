//! What the node in memory does with sizes.

use dayfly_node_api::{BakeState, EnsureSandbox, NodeError, VariantReport, VariantRequest};
use dayfly_types::{MemoryMib, TemplateName, TemplateSize, Vcpus};

use super::fake_node::FakeNode;

pub(crate) fn variant(size: TemplateSize, state: BakeState) -> VariantReport {
    let is_usable = state == BakeState::Ready;
    VariantReport {
        size,
        state,
        is_usable,
        size_bytes: 1 << 28,
        baked_at: is_usable.then_some(1_700_000_000),
        bake_ms: is_usable.then_some(23_000),
        is_awaited: is_usable,
    }
}

/// What a sandbox has, one vCPU and 512 MiB unless it says otherwise.
pub(super) fn size_of(wanted: &EnsureSandbox) -> TemplateSize {
    wanted.size.unwrap_or(TemplateSize {
        memory: MemoryMib::new(512).unwrap(),
        vcpus: Vcpus::new(1).unwrap(),
    })
}

impl FakeNode {
    /// The variants that were asked for.
    pub(crate) fn variant_requests(&self) -> Vec<VariantRequest> {
        self.with(|inner| inner.variant_requests.clone())
    }

    pub(super) fn order_variant(
        &self,
        name: &TemplateName,
        wanted: VariantRequest,
    ) -> Result<VariantReport, NodeError> {
        self.with(|inner| {
            inner.variant_requests.push(wanted.clone());
            let found = inner.templates.iter_mut().find(|one| one.name == *name);
            let template = found.ok_or_else(|| NodeError::not_found("no such template"))?;
            let known = template.variants.iter().find(|one| one.size == wanted.size);
            if let Some(known) = known {
                return Ok(known.clone());
            }
            let report = variant(wanted.size, BakeState::Waiting);
            template.variants.push(report.clone());
            Ok(report)
        })
    }

    /// A sandbox of a snapshot has the snapshot's size.
    pub(super) fn with_size(&self, mut wanted: EnsureSandbox) -> EnsureSandbox {
        let snapshot = wanted.from_snapshot.as_ref();
        let taken = self.with(|inner| {
            let mut snapshots = inner.snapshots.iter();
            snapshots.find(|one| Some(&one.id) == snapshot)?.size
        });
        wanted.size = taken.or(wanted.size);
        wanted
    }
}
