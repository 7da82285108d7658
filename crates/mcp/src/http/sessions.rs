//! Whose a session is, how many there may be, and what goes on in each.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_types::limits::MCP_SESSIONS_MAX;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

/// A place among those that all projects share, until it is dropped.
pub type HeldPlace = Box<dyn Any + Send + Sync>;

/// Where the server of the API says how much a caller may have at once.
pub trait CallerPlaces: Send + Sync {
    /// A place for one more session.
    fn session(&self) -> Option<HeldPlace>;
    /// A place for one more message that is long.
    fn long_message(&self) -> Option<HeldPlace>;
}

/// Who makes a request.
#[derive(Clone)]
pub struct HttpCaller {
    /// What the server knows the key by.
    pub key: String,
    pub places: Arc<dyn CallerPlaces>,
}

impl fmt::Debug for HttpCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCaller")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// Why a session cannot be used or begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionRefusal {
    /// Or of nobody: who asks must not learn which.
    OfSomebodyElse,
    TooMany,
    /// Two requests of one id at once: the responses could not be told apart.
    IdUnderWay,
}

/// The sessions that there are.
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    known: Mutex<HashMap<String, Session>>,
}

struct Session {
    key: String,
    /// Ids of requests, as JSON has them.
    under_way: HashSet<String>,
    _place: HeldPlace,
}

/// The right to begin a session, until it has begun or failed.
pub(super) struct Beginning {
    sessions: Arc<Sessions>,
    key: String,
    place: HeldPlace,
}

/// A request of a session, for as long as anything holds it.
pub(super) struct UnderWay {
    sessions: Arc<Sessions>,
    session: String,
    id: String,
}

impl Sessions {
    pub(super) fn new(manager: Arc<LocalSessionManager>) -> Self {
        Self {
            manager,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        // Every change leaves it whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that a session is the key's.
    pub(super) fn belongs(&self, session: &str, key: &str) -> Result<(), SessionRefusal> {
        let known = self.known();
        let is_own = known.get(session).is_some_and(|known| known.key == key);
        is_own.then_some(()).ok_or(SessionRefusal::OfSomebodyElse)
    }

    /// Begins a request of a session that belongs to its caller.
    pub(super) fn enter(
        self: &Arc<Self>,
        session: &str,
        id: String,
    ) -> Result<UnderWay, SessionRefusal> {
        let mut known = self.known();
        let found = known.get_mut(session);
        let found = found.ok_or(SessionRefusal::OfSomebodyElse)?;
        if !found.under_way.insert(id.clone()) {
            return Err(SessionRefusal::IdUnderWay);
        }
        Ok(UnderWay {
            sessions: Arc::clone(self),
            session: session.to_owned(),
            id,
        })
    }

    /// The session has ended.
    pub(super) fn forget(&self, session: &str) {
        let gone = self.known().remove(session);
        // Behind the lock: giving the place back takes another.
        drop(gone);
    }

    /// Takes a place for a new session.
    pub(super) async fn begin(
        self: &Arc<Self>,
        caller: &HttpCaller,
    ) -> Result<Beginning, SessionRefusal> {
        let live = self.forget_ended().await;
        let place = caller.places.session().ok_or(SessionRefusal::TooMany)?;
        if live >= MCP_SESSIONS_MAX {
            return Err(SessionRefusal::TooMany);
        }
        Ok(Beginning {
            sessions: Arc::clone(self),
            key: caller.key.clone(),
            place,
        })
    }

    /// Forgets sessions that ended by themselves, which told nobody. Gives how many are left.
    async fn forget_ended(&self) -> usize {
        // Read first: what begins after this is not among those that are compared.
        let candidates: Vec<String> = self.known().keys().cloned().collect();
        let live: HashSet<String> = {
            let sessions = self.manager.sessions.read().await;
            sessions.keys().map(ToString::to_string).collect()
        };
        for session in candidates.iter().filter(|one| !live.contains(*one)) {
            self.forget(session);
        }
        live.len()
    }
}

impl Beginning {
    /// The session has begun.
    pub(super) fn begun(self, session: &str) {
        let begun = Session {
            key: self.key,
            under_way: HashSet::new(),
            _place: self.place,
        };
        self.sessions.known().insert(session.to_owned(), begun);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.known().get_mut(&self.session) {
            session.under_way.remove(&self.id);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Places of one caller: as many as are left.
    pub(in crate::http) struct Left(pub(in crate::http) Arc<tokio::sync::Semaphore>);

    impl Left {
        fn place(&self) -> Option<HeldPlace> {
            let permit = Arc::clone(&self.0).try_acquire_owned().ok()?;
            Some(Box::new(permit))
        }
    }

    impl CallerPlaces for Left {
        fn session(&self) -> Option<HeldPlace> {
            self.place()
        }

        fn long_message(&self) -> Option<HeldPlace> {
            self.place()
        }
    }

    pub(in crate::http) fn caller(key: &str, places: usize) -> HttpCaller {
        HttpCaller {
            key: key.to_owned(),
            places: Arc::new(Left(Arc::new(tokio::sync::Semaphore::new(places)))),
        }
    }

    fn sessions() -> Arc<Sessions> {
        Arc::new(Sessions::new(Arc::default()))
    }

    #[tokio::test]
    async fn a_caller_has_as_many_sessions_as_there_are_places_and_no_more() {
        let sessions = sessions();
        let caller = caller("a", 2);
        let first = sessions.begin(&caller).await.ok().unwrap();
        let _second = sessions.begin(&caller).await.ok().unwrap();
        let refused = sessions.begin(&caller).await.err();
        assert_eq!(refused, Some(SessionRefusal::TooMany));
        drop(first);
        assert!(sessions.begin(&caller).await.is_ok());
    }

    #[tokio::test]
    async fn a_session_that_ended_by_itself_gives_its_place_back() {
        let sessions = sessions();
        let caller = caller("a", 1);
        let place = sessions.begin(&caller).await.ok().unwrap();
        // The manager does not know it, as after its idle time.
        place.begun("s");
        assert!(sessions.begin(&caller).await.is_ok());
        let refused = Err(SessionRefusal::OfSomebodyElse);
        assert_eq!(sessions.belongs("s", "a"), refused);
    }

    #[tokio::test]
    async fn a_session_is_its_keys_alone() {
        let sessions = sessions();
        let place = sessions.begin(&caller("a", 1)).await.ok().unwrap();
        place.begun("s");
        assert_eq!(sessions.belongs("s", "a"), Ok(()));
        let refused = Err(SessionRefusal::OfSomebodyElse);
        assert_eq!(sessions.belongs("s", "b"), refused);
        assert_eq!(sessions.belongs("t", "a"), refused);
        sessions.forget("s");
        assert_eq!(sessions.belongs("s", "a"), refused);
    }

    #[tokio::test]
    async fn an_id_is_under_way_once() {
        let sessions = sessions();
        let place = sessions.begin(&caller("a", 1)).await.ok().unwrap();
        place.begun("s");
        let first = sessions.enter("s", "1".to_owned()).ok().unwrap();
        let refused = sessions.enter("s", "1".to_owned()).err();
        assert_eq!(refused, Some(SessionRefusal::IdUnderWay));
        assert!(sessions.enter("s", "\"1\"".to_owned()).is_ok());
        drop(first);
        assert!(sessions.enter("s", "1".to_owned()).is_ok());
    }
}
