//! Few places for each project, in the order of asking.
//!
//! A project that asks a hundred times at once would have everybody else wait for all of it, or see
//! a hundred times that there is room for one more; so what it has no place for waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dayfly_types::ProjectId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

type Projects = HashMap<ProjectId, Arc<Semaphore>>;

/// The places of each project that has any taken.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    per_project: usize,
    projects: Arc<Mutex<Projects>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Turns,
    project: ProjectId,
    permit: Option<OwnedSemaphorePermit>,
}

/// A project's own other work took all the time that there was to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("other calls of this project took all the time that this one could wait for its turn")]
pub struct TurnTimeout;

impl Turns {
    pub(crate) fn new(per_project: usize) -> Self {
        Self {
            per_project,
            projects: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Projects> {
        // Entries are added and removed whole.
        self.projects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, project: &ProjectId) -> Arc<Semaphore> {
        let mut projects = self.lock();
        let places = projects
            .entry(project.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(self.per_project)));
        Arc::clone(places)
    }

    /// Waits for a place of a project, in the order of asking.
    ///
    /// # Errors
    /// [`TurnTimeout`] when there is none within `limit`.
    pub(crate) async fn wait(
        &self,
        project: &ProjectId,
        limit: Duration,
    ) -> Result<Turn, TurnTimeout> {
        // Made first: whoever stops waiting must not leave an entry behind.
        let mut turn = Turn {
            turns: self.clone(),
            project: project.clone(),
            permit: None,
        };
        let place = tokio::time::timeout(limit, self.of(project).acquire_owned()).await;
        // Nobody closes it.
        turn.permit = Some(place.map_err(|_| TurnTimeout)?.map_err(|_| TurnTimeout)?);
        Ok(turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.permit.take();
        let mut projects = self.turns.lock();
        let places = projects.get(&self.project);
        if places.is_some_and(|places| Arc::strong_count(places) == 1) {
            projects.remove(&self.project);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_project_has_so_many_turns_and_another_has_its_own() {
        let turns = Turns::new(2);
        let [many, other] = ["many", "other"].map(|name| ProjectId::parse(name).unwrap());
        let soon = Duration::from_millis(50);
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(turns.wait(&many, soon).await.unwrap());
        }
        assert_eq!(turns.wait(&many, soon).await.unwrap_err(), TurnTimeout);
        drop(turns.wait(&other, soon).await.unwrap());
        held.pop();
        held.push(turns.wait(&many, soon).await.unwrap());
        drop(held);
        assert!(turns.lock().is_empty(), "nothing stays of who is done");
    }
}
