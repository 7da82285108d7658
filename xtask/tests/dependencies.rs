//! What we link comes from the registry, under a licence of the list in `deny.toml`. `cargo deny`
//! looks closer, and takes minutes to build: the soak runs it, the gate has this.
#![expect(
    clippy::unwrap_used,
    reason = "a check that cannot read the sources must fail"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use spdx::{Expression, ParseMode};

const TARGET: &str = "x86_64-unknown-linux-gnu";

#[derive(serde::Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(serde::Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// None for our own.
    source: Option<String>,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(serde::Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

#[derive(serde::Deserialize)]
struct Rules {
    licenses: Licenses,
}

#[derive(serde::Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", TARGET])
        .current_dir(root())
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let metadata: Metadata = serde_json::from_slice(&output.stdout).unwrap();
    metadata.packages
}

fn allowed_licences() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    toml::from_str::<Rules>(&text).unwrap().licenses.allow
}

fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    Expression::parse_mode(expression, ParseMode::LAX)
        .is_ok_and(|parsed| parsed.evaluate(|one| allowed.contains(&one.to_string())))
}

#[test]
fn every_licence_is_on_the_list() {
    let allowed = allowed_licences();
    let packages = packages();
    let foreign: Vec<_> = packages.iter().filter(|one| one.source.is_some()).collect();
    assert!(foreign.len() > 100, "only {} packages", foreign.len());
    for package in foreign {
        let licence = package.license.as_deref().unwrap_or("none");
        let what = format!("{} {}: {licence}", package.name, package.version);
        assert!(is_allowed(licence, &allowed), "{what}");
    }
}

#[test]
fn the_list_is_read_as_it_is_meant() {
    let allowed = ["MIT".to_owned(), "ISC".to_owned()];
    assert!(is_allowed("MIT", &allowed));
    assert!(is_allowed("GPL-3.0-only OR (MIT AND ISC)", &allowed));
    assert!(!is_allowed("GPL-3.0-only AND MIT", &allowed));
    assert!(!is_allowed("none", &allowed));
}

#[test]
fn everything_foreign_comes_from_the_registry_in_a_named_version() {
    let mut sources = BTreeSet::new();
    for package in packages() {
        if let Some(source) = package.source {
            let is_registry =
                source.starts_with("registry+") && source.ends_with("/crates.io-index");
            assert!(is_registry, "{} comes from {source}", package.name);
            sources.insert(source);
            continue;
        }
        let is_ours = package.manifest_path.starts_with(root());
        assert!(is_ours, "{} is outside of this project", package.name);
        for dependency in package.dependencies {
            let is_named = dependency.path.is_some() || dependency.req != "*";
            assert!(is_named, "{} takes any {}", package.name, dependency.name);
        }
    }
    assert_eq!(sources.len(), 1, "there is one registry: {sources:?}");
}
