//! Which sandboxes, captures, templates and engine roots go into a backup, as of one moment.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use dayfly_installation::DataDirectory;

use super::captures::HeldCaptures;
use super::output::Output;
use super::records::Records;
use super::stage::{Stage, hold_tree};

/// How often what changed while it was looked at is looked at again.
const ROUNDS_MAX: u32 = 10;
const CAPTURES: &str = "captures";
const TEMPLATES: &str = "templates";
const ENGINE_ROOTS: &str = "engine-roots";

/// What was found, all of it held.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) records: Records,
    pub(super) captures: HeldCaptures,
}

impl Collected {
    /// Looks until what was found fits together: every capture that is needed is held, with what
    /// it lies on and was made from. A capture that was deleted meanwhile is left out, with the
    /// record that named it.
    pub(super) fn now(directory: &DataDirectory, stage: &Stage) -> Result<Self> {
        let node = directory.node();
        // Before the captures: one that is deleted while it is held takes its engine with it.
        hold_engines(&node.join(ENGINE_ROOTS), &stage.make(ENGINE_ROOTS)?)?;
        let mut captures = HeldCaptures::new(node.join(CAPTURES), stage.make(CAPTURES)?);
        let mut round = 0;
        let records = loop {
            let records = Records::read(directory)?;
            captures.hold_new()?;
            let is_all = !records.unreadable.is_empty();
            let needed = captures.needed(records.captures(), is_all);
            let incomplete = captures.incomplete(&needed);
            round += 1;
            if incomplete.is_empty() || round == ROUNDS_MAX {
                // What still lacks something lacks it on this node as well, and is as it is.
                break records;
            }
            for id in incomplete {
                captures.hold(&id)?;
            }
        };
        let collected = Self { records, captures };
        collected.hold_templates(&node, stage)?;
        Ok(collected)
    }

    /// Holds the versions of templates that captures and sleepers lie on. They were there when
    /// those were read, and are removed only when a node bakes anew and nothing needs them.
    fn hold_templates(&self, node: &Path, stage: &Stage) -> Result<()> {
        let is_all = !self.records.unreadable.is_empty();
        let needed = self.captures.needed(self.records.captures(), is_all);
        let versions = self.captures.template_versions(&needed);
        let versions: Option<BTreeSet<String>> = versions.filter(|_| !is_all).map(|versions| {
            let asleep = self.records.asleep.values();
            let asleep = asleep.map(|record| record.template_version.clone());
            versions.into_iter().chain(asleep).collect()
        });
        let is_needed = |version: &str| {
            versions
                .as_ref()
                .is_none_or(|versions| versions.contains(version))
        };
        let to = stage.make(TEMPLATES)?;
        for name in names(&node.join(TEMPLATES))? {
            let from = node.join(TEMPLATES).join(&name);
            if from.is_dir() {
                hold_each(&from, &to.join(&name), &is_needed)?;
            }
        }
        Ok(())
    }

    pub(super) fn add_to(&self, output: &mut Output<'_>, stage: &Stage) -> Result<()> {
        self.records.add_to(output)?;
        let is_all = !self.records.unreadable.is_empty();
        let needed = self.captures.needed(self.records.captures(), is_all);
        output.directory("node/captures", &stage.path(CAPTURES))?;
        self.captures.add_to(output, &needed)?;
        output.sealed_tree("node/templates", &stage.path(TEMPLATES))?;
        output.sealed_tree("node/engine-roots", &stage.path(ENGINE_ROOTS))
    }
}

/// Holds each directory of `from` whose name is wanted. One that is going just now is passed over.
fn hold_each(from: &Path, to: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Result<()> {
    for name in names(from)? {
        let inner = from.join(&name);
        if is_wanted(&name) && inner.is_dir() {
            hold_tree(&inner, &to.join(&name))?;
        }
    }
    Ok(())
}

/// Holds every engine, with its record beside it: without that nobody knows what it is.
fn hold_engines(from: &Path, to: &Path) -> Result<()> {
    hold_each(from, to, &|_| true)?;
    for name in names(from)? {
        let file = from.join(&name);
        if !file.is_file() {
            continue;
        }
        match fs::hard_link(&file, to.join(&name)) {
            // It went with its engine.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other.with_context(|| format!("cannot hold {}", file.display()))?,
        }
    }
    Ok(())
}

/// What is in a directory, but for what is being made there. One that is absent is empty.
fn names(directory: &Path) -> Result<Vec<String>> {
    let items = match fs::read_dir(directory) {
        Ok(items) => items,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context("cannot list a directory of the node"),
    };
    let mut names = Vec::new();
    for item in items {
        let name = item
            .context("cannot list a directory of the node")?
            .file_name();
        let name = name.to_string_lossy().into_owned();
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_held_with_its_record() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("abc/usr/bin")).unwrap();
        fs::create_dir_all(from.join(".building-def")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("abc/usr/bin/engine"), "program").unwrap();
        for name in ["abc.json", "abc.retired", "installed"] {
            fs::write(from.join(name), name).unwrap();
        }
        hold_engines(&from, &to).unwrap();
        fs::remove_dir_all(&from).unwrap();
        let mut held = names(&to).unwrap();
        held.sort();
        assert_eq!(held, ["abc", "abc.json", "abc.retired", "installed"]);
        let program = fs::read_to_string(to.join("abc/usr/bin/engine")).unwrap();
        assert_eq!(program, "program");
    }
}
