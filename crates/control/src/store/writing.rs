//! Whose turn it is to write: there is one writer, and it serves in the order of asking.

use std::time::Duration;

use dayfly_types::ProjectId;

use super::Store;
use crate::turns::Turn;

/// Two, so that the writer never waits for the next of a project that is alone.
pub(super) const TURNS_PER_PROJECT: usize = 2;
const DEADLINE: Duration = Duration::from_secs(5);

impl Store {
    /// Waits until it is the project's turn to write.
    ///
    /// # Errors
    /// [`sqlx::Error::PoolTimedOut`], as for the writer itself.
    pub(super) async fn turn(&self, project: &ProjectId) -> Result<Turn, sqlx::Error> {
        let turn = self.turns.wait(project, DEADLINE).await;
        turn.map_err(|_| sqlx::Error::PoolTimedOut)
    }
}

#[cfg(test)]
mod tests {
    use dayfly_types::egress::EgressPolicy;

    use super::*;

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
