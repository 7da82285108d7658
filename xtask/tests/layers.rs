//! Arrows point down: every edge between our crates is in `layers.toml`, and none goes up.
#![expect(
    clippy::unwrap_used,
    reason = "a check that cannot read the sources must fail"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

#[derive(serde::Deserialize)]
struct Crate {
    layer: u8,
    uses: BTreeSet<String>,
    #[serde(default)]
    dev: BTreeSet<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn allowed() -> BTreeMap<String, Crate> {
    let text = std::fs::read_to_string(root().join("layers.toml")).unwrap();
    toml::from_str(&text).unwrap()
}

fn metadata() -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `dayfly-types` is `types` in the list; programs keep their whole names.
fn short(name: &str) -> String {
    if [
        "dayfly-bench",
        "dayfly-guest",
        "dayfly-image",
        "dayfly-jail",
        "dayfly-egress-process",
        "dayfly-memory",
    ]
    .contains(&name)
    {
        return name.to_owned();
    }
    name.strip_prefix("dayfly-").unwrap_or(name).to_owned()
}

#[test]
fn every_edge_between_our_crates_is_allowed() {
    let allowed = allowed();
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let ours: BTreeSet<&str> = packages
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    let mut faults = Vec::new();
    for package in packages {
        let name = short(package["name"].as_str().unwrap());
        let Some(rule) = allowed.get(&name) else {
            faults.push(format!("{name} is not in layers.toml"));
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let target = dependency["name"].as_str().unwrap();
            if !ours.contains(target) {
                continue;
            }
            let target = short(target);
            let is_dev = dependency["kind"].as_str() == Some("dev");
            if !(rule.uses.contains(&target) || is_dev && rule.dev.contains(&target)) {
                faults.push(format!("{name} may not use {target}"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn arrows_point_down() {
    let allowed = allowed();
    for (name, rule) in &allowed {
        for target in &rule.uses {
            let below = &allowed[target];
            // Two crates of one layer may not use each other, but for the test kit, which is a
            // dev-dependency only and drives the client side of the guest.
            let is_exception = name == "testkit" && target == "guest-client";
            assert!(
                below.layer < rule.layer || is_exception,
                "{name} -> {target} points up"
            );
        }
    }
}

#[test]
fn every_crate_takes_the_workspace_lints() {
    for package in metadata()["packages"].as_array().unwrap() {
        let manifest = std::fs::read_to_string(package["manifest_path"].as_str().unwrap()).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{} does not take the workspace lints",
            package["name"]
        );
    }
}
