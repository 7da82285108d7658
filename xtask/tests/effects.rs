//! Every effect of the node on the world passes a point at which crash tests end it.
//!
//! Ports and stores are wrapped as a whole, so their effects have points by themselves. What could
//! go around them is a call of the guest or of the file system that was written somewhere else.
#![expect(
    clippy::unwrap_used,
    reason = "a check that cannot read the sources must fail"
)]

use std::path::{Path, PathBuf};

use xtask::source::rust_files;

/// Calls that change something outside.
const EFFECTS: [&str; 17] = [
    ".quiesce(",
    ".identify(",
    ".thaw(",
    ".thaw_at(",
    ".mount_volume(",
    ".unmount_volume(",
    "agent.grow_disk(",
    "fs::write(",
    "fs::rename(",
    "fs::remove_",
    "fs::create_dir",
    "fs::hard_link(",
    "fs::set_permissions(",
    "File::create",
    "link_regular(",
    "write_atomic(",
    "remove_tree(",
];

/// Where effects are done on purpose: behind a point of their own, or before anything exists that
/// a crash could harm.
const BEHIND_POINTS: [&str; 13] = [
    "effects/",
    // The gate has points around it; the record of decisions is no state that anything depends on.
    "egress/",
    // One file, replaced in one step, that nothing else is made after.
    "identity.rs",
    "journal.rs",
    "journal_tests.rs",
    "volume_tools.rs",
    "volumes.rs",
    "template_list_tests.rs",
    "volumes_tests.rs",
    "slots.rs",
    "bake/",
    "baker.rs",
    "sandbox/activity.rs",
];

/// How far above a call its point may stand.
const LINES_ABOVE: usize = 4;

fn node_sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/node/src");
    let found = rust_files(&root).unwrap();
    assert!(found.len() > 20, "the walk found only {}", found.len());
    found
}

/// The lines that have an effect and no point, by number.
fn faults(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let mut faults = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if !EFFECTS.iter().any(|effect| code.contains(effect)) {
            continue;
        }
        let above = &lines[index.saturating_sub(LINES_ABOVE)..=(index + 2).min(lines.len() - 1)];
        if !above.iter().any(|line| line.contains("around")) {
            faults.push(index + 1);
        }
    }
    faults
}

#[test]
fn every_effect_of_the_node_has_a_point() {
    let mut found = Vec::new();
    let mut points = 0;
    for path in node_sources() {
        let name = path.display().to_string();
        let short = name.rsplit("crates/node/src/").next().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        points += text.matches("Effect::").count();
        if BEHIND_POINTS.iter().any(|part| short.starts_with(part)) {
            continue;
        }
        let tests = text.find("#[cfg(test)]").unwrap_or(text.len());
        found.extend(
            faults(&text[..tests])
                .into_iter()
                .map(|line| format!("{short}:{line}")),
        );
    }
    assert!(points > 30, "only {points} points were found");
    assert!(found.is_empty(), "effects without a point: {found:#?}");
}

#[test]
fn an_effect_without_a_point_is_found() {
    assert_eq!(faults("let x = 1;\nagent.quiesce(spec).await?;\n"), [2]);
    let fine =
        "effects\n    .around_async(Effect::GuestQuiesce, agent.quiesce(spec))\n    .await?;\n";
    assert!(faults(fine).is_empty());
}
