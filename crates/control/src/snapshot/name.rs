//! Names of snapshots, which stand for them wherever an id may stand.
//!
//! A name of the grammar of ids that does not begin like one is unique within its project. Any other
//! name is a label for people, and stands for nothing.

use dayfly_node_api::SnapshotReport;
use dayfly_types::SnapshotId;

/// What the ids of all snapshots begin with. A name that did could be taken for a snapshot that is
/// gone.
const ID_MARK: &str = "snap-";

/// The name as a reference, if it can be one.
pub(crate) fn reference(name: &str) -> Option<SnapshotId> {
    let is_name = !name.starts_with(ID_MARK);
    SnapshotId::parse(name).ok().filter(|_| is_name)
}

/// Which of a project's snapshots a name stands for: the oldest of that name. There were several of
/// one name before names were unique, and none that comes later may take it.
pub(crate) fn of_name<'a>(
    name: &SnapshotId,
    snapshots: impl IntoIterator<Item = &'a SnapshotReport>,
) -> Option<&'a SnapshotReport> {
    let name = reference(name.as_str())?;
    let named = snapshots.into_iter().filter(|one| {
        let own = one.name.as_deref();
        own.is_some_and(|own| own == name.as_str())
    });
    named.min_by_key(|one| (one.created_at, one.id.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_of_the_grammar_of_ids_is_a_reference() {
        for name in ["tools", "team-tools-2", "v1"] {
            assert!(reference(name).is_some(), "{name}");
        }
        for name in [
            "",
            "Tools",
            "before the upgrade",
            "a.b",
            "-a",
            "snap-local-1",
        ] {
            assert!(reference(name).is_none(), "{name}");
        }
    }
}
