//! The builds that run in this process, and the events of those that ended last.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_types::ProjectId;
use dayfly_types::limits::{BUILD_LOGS_REMEMBERED_MAX, BUILDS_MAX, BUILDS_OF_PROJECT_MAX};
use tokio_util::sync::CancellationToken;

use super::log::BuildLog;
use crate::admission::limit::TooMany;
use crate::store::BuildRow;
use crate::time::now_ms;

/// Builds of this process.
#[derive(Debug)]
pub(crate) struct Builds {
    /// When this process began: what ran before it does not run any more.
    pub(crate) since_ms: i64,
    /// Where files of build contexts are kept, without names.
    pub(crate) directory: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// By ids, in the order in which they began.
    builds: BTreeMap<u64, Arc<LiveBuild>>,
    began: u64,
    /// Only of those that have any.
    places: HashMap<ProjectId, usize>,
}

/// A build that this process has run, or runs.
#[derive(Debug)]
pub(crate) struct LiveBuild {
    pub(crate) project: ProjectId,
    pub(crate) id: String,
    pub(crate) log: BuildLog,
    /// Somebody wants it to end.
    pub(crate) cancelled: CancellationToken,
    row: Mutex<BuildRow>,
}

/// The right to run a build, until it is dropped.
#[derive(Debug)]
pub(crate) struct BuildPlace {
    builds: Arc<Builds>,
    project: ProjectId,
}

impl LiveBuild {
    pub(crate) fn new(row: BuildRow) -> Self {
        Self {
            project: row.project.clone(),
            id: row.id.clone(),
            log: BuildLog::new(),
            cancelled: CancellationToken::new(),
            row: Mutex::new(row),
        }
    }

    /// How far it is.
    pub(crate) fn row(&self) -> BuildRow {
        self.locked().clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut BuildRow)) -> BuildRow {
        let mut row = self.locked();
        change(&mut row);
        row.clone()
    }

    fn locked(&self) -> MutexGuard<'_, BuildRow> {
        // Fields that are set one at a time: a panic leaves them whole.
        self.row.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Builds {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self {
            since_ms: now_ms(),
            directory,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Whatever was changed is counted again when it is dropped.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// [`TooMany`] when the project, or the server, has as many as may be.
    pub(crate) fn place(self: &Arc<Self>, project: &ProjectId) -> Result<BuildPlace, TooMany> {
        let mut known = self.known();
        let own = known.places.get(project).copied().unwrap_or(0);
        if own >= BUILDS_OF_PROJECT_MAX {
            let what = "builds of one project";
            return Err(TooMany { what });
        }
        if known.places.values().sum::<usize>() >= BUILDS_MAX {
            return Err(TooMany { what: "builds" });
        }
        known.places.insert(project.clone(), own + 1);
        Ok(BuildPlace {
            builds: Arc::clone(self),
            project: project.clone(),
        })
    }

    /// Remembers a build, in the place of the oldest that ended if need be.
    pub(crate) fn insert(&self, build: Arc<LiveBuild>) {
        let mut known = self.known();
        known.began += 1;
        let number = known.began;
        known.builds.insert(number, build);
        let ended = known
            .builds
            .iter()
            .filter(|(_, build)| !build.row().is_open());
        let ended: Vec<u64> = ended.map(|(number, _)| *number).collect();
        let too_many = ended.len().saturating_sub(BUILD_LOGS_REMEMBERED_MAX);
        for number in ended.iter().take(too_many) {
            known.builds.remove(number);
        }
    }

    pub(crate) fn find(&self, project: &ProjectId, id: &str) -> Option<Arc<LiveBuild>> {
        let known = self.known();
        let mut builds = known.builds.values();
        let found = builds.find(|build| build.id == id && build.project == *project);
        found.map(Arc::clone)
    }

    pub(crate) fn forget(&self, project: &ProjectId, id: &str) {
        let mut known = self.known();
        let is_it = |build: &LiveBuild| build.id == id && build.project == *project;
        known.builds.retain(|_, build| !is_it(build));
    }

    /// Ends what runs, of one project or of all.
    pub(crate) fn cancel(&self, project: Option<&ProjectId>) {
        let known = self.known();
        let is_meant = |build: &&Arc<LiveBuild>| project.is_none_or(|one| *one == build.project);
        for build in known.builds.values().filter(is_meant) {
            build.cancelled.cancel();
        }
    }
}

impl Drop for BuildPlace {
    fn drop(&mut self) {
        let mut known = self.builds.known();
        if let Some(own) = known.places.get_mut(&self.project) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                known.places.remove(&self.project);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_project_nor_all_have_more_than_they_may() {
        let builds = Arc::new(Builds::new(PathBuf::new()));
        let project = |name: &str| ProjectId::parse(name).unwrap();
        let mut held = Vec::new();
        for name in ["a", "b", "c", "d"] {
            for _ in 0..BUILDS_OF_PROJECT_MAX {
                held.push(builds.place(&project(name)).unwrap());
            }
            assert!(builds.place(&project(name)).is_err());
        }
        assert_eq!(held.len(), BUILDS_MAX);
        assert!(builds.place(&project("e")).is_err());
        held.pop();
        assert!(builds.place(&project("e")).is_ok());
        held.clear();
        assert!(builds.known().places.is_empty());
    }
}
