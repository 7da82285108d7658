//! Whose turn it is to write.
//!
//! There is one writer, and it serves in the order of asking. A project that asks a hundred times
//! at once would have everybody else wait for all of it; so each project has few places in that
//! order, and its other writes wait for those.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dayfly_types::ProjectId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Store;

/// Two, so that the writer never waits for the next of a project that is alone.
const TURNS_PER_PROJECT: usize = 2;
const DEADLINE: Duration = Duration::from_secs(5);

type Projects = HashMap<ProjectId, Arc<Semaphore>>;

/// The places of each project that has any taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns(Arc<Mutex<Projects>>);

/// A place in the order of writing, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Turns,
    project: ProjectId,
    permit: Option<OwnedSemaphorePermit>,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Projects> {
        // Entries are added and removed whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, project: &ProjectId) -> Arc<Semaphore> {
        let mut projects = self.lock();
        let places = projects
            .entry(project.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(TURNS_PER_PROJECT)));
        Arc::clone(places)
    }

    /// Waits for a place of a project.
    ///
    /// # Errors
    /// [`sqlx::Error::PoolTimedOut`], as for the writer itself.
    async fn wait(&self, project: &ProjectId) -> Result<Turn, sqlx::Error> {
        // Made first: whoever stops waiting must not leave an entry behind.
        let mut turn = Turn {
            turns: self.clone(),
            project: project.clone(),
            permit: None,
        };
        let place = tokio::time::timeout(DEADLINE, self.of(project).acquire_owned()).await;
        let place = place.map_err(|_| sqlx::Error::PoolTimedOut)?;
        turn.permit = Some(place.map_err(|_| sqlx::Error::PoolClosed)?);
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

impl Store {
    /// Waits until it is the project's turn to write.
    ///
    /// # Errors
    /// [`sqlx::Error`].
    pub(super) async fn turn(&self, project: &ProjectId) -> Result<Turn, sqlx::Error> {
        self.turns.wait(project).await
    }
}

#[cfg(test)]
mod tests {
    use dayfly_types::egress::EgressPolicy;

    use super::*;

    #[tokio::test]
    async fn a_project_has_so_many_turns_and_another_has_its_own() {
        let turns = Turns::default();
        let [many, other] = ["many", "other"].map(|name| ProjectId::parse(name).unwrap());
        let mut held = Vec::new();
        for _ in 0..TURNS_PER_PROJECT {
            held.push(turns.wait(&many).await.unwrap());
        }
        let soon = Duration::from_millis(50);
        let third = tokio::time::timeout(soon, turns.wait(&many)).await;
        assert!(third.is_err(), "it waits");
        let unhindered = tokio::time::timeout(soon, turns.wait(&other)).await;
        drop(unhindered.unwrap());
        held.pop();
        let third = tokio::time::timeout(soon, turns.wait(&many)).await;
        held.push(third.unwrap().unwrap());
        drop(held);
        assert!(turns.lock().is_empty(), "nothing stays of who is done");
    }

    #[tokio::test]
    async fn writes_of_a_project_wait_for_its_turns_and_those_of_another_do_not() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("database")).await.unwrap();
        let [many, other] = ["many", "other"].map(|name| ProjectId::parse(name).unwrap());
        let policy = EgressPolicy::default();
        for project in [&many, &other] {
            store.ensure_project(project, 1).await.unwrap();
        }
        let mut held = Vec::new();
        for _ in 0..TURNS_PER_PROJECT {
            held.push(store.turn(&many).await.unwrap());
        }
        let soon = Duration::from_millis(300);
        let waits = store.set_network_default(&many, &policy, 1);
        assert!(tokio::time::timeout(soon, waits).await.is_err());
        let passes = store.set_network_default(&other, &policy, 1);
        passes.await.unwrap();
        // A key that floods its project must not hold up its own end.
        store.revoke_api_key(&many, "dfk_x", 1).await.unwrap();
        drop(held);
        let waited = store.set_network_default(&many, &policy, 1);
        waited.await.unwrap();
    }
}
