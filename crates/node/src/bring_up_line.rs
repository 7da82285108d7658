//! Whose turn it is to bring a machine up.
//!
//! A bring-up is work for processors from its beginning to its end. Twenty at once on two of them
//! would all be done when the last is; two at a time, half of them are done in half of the time,
//! and the whole takes no longer. So there are few places, and whoever gets none waits in a line
//! that is fair between projects.
//!
//! Boots on a disk have turns of their own ([`crate::boots`]): one holds a processor for half a
//! minute under emulation, and whoever waited behind two of them would miss its deadline.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dayfly_core::fair_line::{FairLine, LineBounds, LineFull, LineNumber};
use dayfly_node_api::NodeError;
use dayfly_types::{ErrorCode, ProjectId, limits};
use tokio::sync::oneshot;

/// How soon a caller may ask again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The places, and the line in front of them.
#[derive(Debug)]
pub(crate) struct BringUpLine {
    places: usize,
    deadline: Duration,
    calls: Mutex<Calls>,
}

#[derive(Debug)]
struct Calls {
    line: FairLine<oneshot::Sender<()>>,
    taken: usize,
}

/// A place in the line, and then the right to bring a machine up, until it is dropped.
#[derive(Debug)]
pub(crate) struct BringUpTurn {
    line: Arc<BringUpLine>,
    project: ProjectId,
    number: LineNumber,
    /// There until it was called.
    call: Option<oneshot::Receiver<()>>,
    asked: Instant,
    joined: Instant,
    waited: Duration,
}

/// Why a machine cannot be brought up now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoBringUp {
    #[error("too many machines of this node are to be brought up at once: {0}; ask again")]
    Full(#[source] LineFull),
    #[error(
        "the node brings up other machines and had no turn for this one within {0:?}; ask again"
    )]
    TooLong(Duration),
}

impl From<NoBringUp> for NodeError {
    fn from(error: NoBringUp) -> Self {
        Self::new(ErrorCode::NoCapacity, error.to_string()).retry_after(RETRY_AFTER)
    }
}

impl BringUpLine {
    /// A line of a host with so many processors.
    pub(crate) fn of_host(processors: usize) -> Arc<Self> {
        let bounds = LineBounds {
            of_all: limits::BRING_UPS_WAITING_MAX,
            of_project: limits::BRING_UPS_WAITING_OF_PROJECT_MAX,
        };
        let places = processors * limits::BRING_UPS_PER_PROCESSOR;
        Self::with_places(places, bounds, limits::BRING_UP_WAIT_DEADLINE)
    }

    fn with_places(places: usize, bounds: LineBounds, deadline: Duration) -> Arc<Self> {
        Arc::new(Self {
            places: places.max(1),
            deadline,
            calls: Mutex::new(Calls {
                line: FairLine::new(bounds),
                taken: 0,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the line. From here on its place counts, whenever it is that somebody waits for it.
    /// `asked` is when its caller did: what was waited for before, room for one, counts as well.
    ///
    /// # Errors
    /// [`NoBringUp::Full`].
    pub(crate) fn join(
        self: &Arc<Self>,
        project: &ProjectId,
        asked: Instant,
    ) -> Result<BringUpTurn, NoBringUp> {
        let (caller, call) = oneshot::channel();
        let mut calls = self.lock();
        let number = calls.line.join(project, caller).map_err(NoBringUp::Full)?;
        calls.call_next(self.places);
        drop(calls);
        Ok(BringUpTurn {
            line: Arc::clone(self),
            project: project.clone(),
            number,
            call: Some(call),
            asked,
            joined: Instant::now(),
            waited: Duration::ZERO,
        })
    }

    /// Whether something else may be started beside what goes on: half of the places stay free, and
    /// on a small host there is never so much room.
    pub(crate) fn has_spare(&self) -> bool {
        let calls = self.lock();
        calls.line.is_empty() && (calls.taken + 1) * 2 < self.places
    }
}

impl Calls {
    fn call_next(&mut self, places: usize) {
        while self.taken < places
            && let Some((_, caller)) = self.line.call_next()
        {
            self.taken += 1;
            // Who stops waiting leaves the line before its end of this goes.
            let _ = caller.send(());
        }
    }
}

impl BringUpTurn {
    /// Waits for the turn. May be repeated.
    ///
    /// # Errors
    /// [`NoBringUp::TooLong`].
    ///
    /// # Cancel safety
    /// Dropping the future keeps the place in the line; dropping the turn gives it up.
    pub(crate) async fn come(&mut self) -> Result<(), NoBringUp> {
        let Some(call) = &mut self.call else {
            return Ok(());
        };
        let deadline = self.line.deadline;
        let left = deadline.saturating_sub(self.asked.elapsed());
        // The caller's end goes only with a call.
        let called = tokio::time::timeout(left, call).await;
        let came = called.ok().and_then(Result::ok);
        came.ok_or(NoBringUp::TooLong(deadline))?;
        self.call = None;
        self.waited = self.joined.elapsed();
        Ok(())
    }

    /// From joining to the call.
    pub(crate) const fn waited(&self) -> Duration {
        self.waited
    }
}

impl Drop for BringUpTurn {
    fn drop(&mut self) {
        let mut calls = self.line.lock();
        if calls.line.leave(&self.project, self.number).is_none() {
            // It was called, whether or not it has noticed.
            calls.taken -= 1;
            calls.call_next(self.line.places);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const BOUNDS: LineBounds = LineBounds {
        of_all: 4,
        of_project: 3,
    };

    const LIMIT: Duration = Duration::from_secs(10);

    fn project(name: &str) -> ProjectId {
        ProjectId::parse(name).unwrap()
    }

    fn join(line: &Arc<BringUpLine>, name: &str) -> Result<BringUpTurn, NoBringUp> {
        line.join(&project(name), Instant::now())
    }

    fn is_called(turn: &mut BringUpTurn) -> bool {
        turn.come().now_or_never().is_some_and(|come| come.is_ok())
    }

    #[tokio::test]
    async fn few_are_brought_up_at_once_and_the_others_in_their_order() {
        let line = BringUpLine::with_places(2, BOUNDS, LIMIT);
        let mut turns: Vec<_> = (0..4).map(|_| join(&line, "a").unwrap()).collect();
        let called: Vec<bool> = turns.iter_mut().map(is_called).collect();
        assert_eq!(called, [true, true, false, false]);
        let mut other = join(&line, "b").unwrap();
        turns.remove(0);
        assert!(is_called(&mut turns[1]) && !is_called(&mut other));
        turns.remove(0);
        assert!(is_called(&mut other), "it waited for more than one turn");
        assert!(!is_called(&mut turns[1]));
        drop(other);
        assert!(is_called(&mut turns[1]));
        assert!(is_called(&mut turns[1]), "a turn that came stays");
        drop(turns);
        assert_eq!(line.lock().taken, 0);
    }

    #[tokio::test]
    async fn who_gives_up_leaves_no_place_taken() {
        let line = BringUpLine::with_places(1, BOUNDS, LIMIT);
        let first = join(&line, "a").unwrap();
        let waits = join(&line, "a").unwrap();
        let mut last = join(&line, "a").unwrap();
        drop(waits);
        drop(first);
        assert!(is_called(&mut last));
        let unnoticed = join(&line, "a").unwrap();
        drop(last);
        // It was called and goes before it looks.
        drop(unnoticed);
        let mut next = join(&line, "b").unwrap();
        assert!(is_called(&mut next));
    }

    #[test]
    fn there_is_spare_room_only_where_most_places_are_free() {
        let small = BringUpLine::with_places(2, BOUNDS, LIMIT);
        assert!(!small.has_spare());
        let line = BringUpLine::with_places(5, BOUNDS, LIMIT);
        let _first = join(&line, "a").unwrap();
        assert!(line.has_spare());
        let _second = join(&line, "a").unwrap();
        assert!(!line.has_spare());
    }

    #[tokio::test]
    async fn a_full_line_refuses_with_a_time_to_ask_again() {
        let line = BringUpLine::with_places(1, BOUNDS, LIMIT);
        let _turns: Vec<_> = (0..4).map(|_| join(&line, "a").unwrap()).collect();
        let refusal = NodeError::from(join(&line, "a").unwrap_err());
        assert_eq!(refusal.code, ErrorCode::NoCapacity);
        assert_eq!(refusal.retry_after_ms, Some(5000));
        assert!(join(&line, "b").is_ok());
    }

    #[tokio::test]
    async fn nobody_waits_for_ever() {
        let limit = Duration::from_millis(20);
        let line = BringUpLine::with_places(1, BOUNDS, limit);
        let _held = join(&line, "a").unwrap();
        let mut waits = join(&line, "a").unwrap();
        assert_eq!(waits.come().await, Err(NoBringUp::TooLong(limit)));
        assert!(waits.waited().is_zero());
        // What it waited for before it joined is part of it.
        let asked = Instant::now().checked_sub(LIMIT).unwrap();
        let patient = BringUpLine::with_places(1, BOUNDS, LIMIT);
        let _held = join(&patient, "a").unwrap();
        let mut late = patient.join(&project("a"), asked).unwrap();
        assert_eq!(late.come().await, Err(NoBringUp::TooLong(LIMIT)));
    }
}
