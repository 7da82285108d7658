//! What still needs an engine, so that its build is kept.

use std::io;

use dayfly_snapshots::capture::{CaptureManifest, CapturePurpose};
use dayfly_snapshots::{EngineIdentity, OpenError, TemplateStore};
use dayfly_types::{SandboxId, SnapshotId, TemplateName};

use crate::journal::Entry;

/// Somebody who could not be restored without an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineUser {
    pub engine: EngineIdentity,
    pub what: EngineUse,
}

/// Who that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineUse {
    /// One version of a template.
    Template { name: TemplateName, version: String },
    /// A sandbox whose machine runs in it now.
    Running(SandboxId),
    /// A sandbox that sleeps.
    Asleep(SandboxId),
    /// A snapshot, or the source of a fork.
    Snapshot(SnapshotId),
    /// A capture that was deleted: nobody restores it, but a machine that was restored from it may
    /// be about to be noted.
    Deleted(SnapshotId),
}

/// What cannot be read might need any engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the record of a sandbox cannot be read, or does not say in which engine it runs")]
pub struct UnknownEngine;

/// The sandboxes that run. One of an older program's record may run in any engine until it is
/// captured or ends.
///
/// # Errors
/// [`UnknownEngine`].
pub fn running_users(entries: &[Entry]) -> Result<Vec<EngineUser>, UnknownEngine> {
    let mut users = Vec::new();
    for entry in entries {
        let record = match entry {
            Entry::Record(record) => record,
            Entry::Empty { .. } => continue,
            Entry::Unreadable { .. } => return Err(UnknownEngine),
        };
        if record.phase.process().is_none() {
            continue;
        }
        users.push(EngineUser {
            engine: record.engine.clone().ok_or(UnknownEngine)?,
            what: EngineUse::Running(record.id.clone()),
        });
    }
    Ok(users)
}

/// What was or can be restored from captures. One that has only a disk needs no engine.
#[must_use]
pub fn captured_users<'a>(
    captures: impl IntoIterator<Item = &'a CaptureManifest>,
) -> Vec<EngineUser> {
    let user = |capture: &CaptureManifest| {
        let what = match capture.purpose {
            CapturePurpose::Layer => return None,
            _ if capture.deleted => EngineUse::Deleted(capture.id.clone()),
            CapturePurpose::Hibernation => EngineUse::Asleep(capture.sandbox.clone()),
            CapturePurpose::Snapshot | CapturePurpose::Fork => {
                EngineUse::Snapshot(capture.id.clone())
            }
        };
        Some(EngineUser {
            engine: capture.engine.clone(),
            what,
        })
    };
    captures.into_iter().filter_map(user).collect()
}

/// Why it cannot be told what templates need.
#[derive(Debug, thiserror::Error)]
pub enum TemplateUsersError {
    #[error("cannot list the templates")]
    Names(#[source] io::Error),
    #[error("cannot list the versions of a template")]
    Versions(#[source] OpenError),
}

/// Every version of a template that can be opened. One that cannot is of no use to anybody, and
/// its engine not either.
///
/// # Errors
/// [`TemplateUsersError`].
pub fn template_users(store: &TemplateStore) -> Result<Vec<EngineUser>, TemplateUsersError> {
    let mut users = Vec::new();
    for name in store.names().map_err(TemplateUsersError::Names)? {
        let versions = store
            .versions(&name)
            .map_err(TemplateUsersError::Versions)?;
        for version in versions {
            let Ok(template) = store.open_version(&name, &version) else {
                continue;
            };
            users.push(EngineUser {
                engine: template.manifest().engine.clone(),
                what: EngineUse::Template {
                    name: name.clone(),
                    version: version.as_str().to_owned(),
                },
            });
        }
    }
    Ok(users)
}

#[cfg(test)]
#[path = "engine_users_tests.rs"]
mod tests;
