//! How fast, and how many at once, a project may ask.
//!
//! Kept in memory: what a project did before a restart does not count.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dayfly_types::ProjectId;
use dayfly_types::limits::{CREATES_AT_ONCE_MAX, PROJECTS_REMEMBERED_MAX, WATCHES_AT_ONCE_MAX};

use crate::admission::limit::TooMany;

/// A project may ask for this long's worth at once after a pause.
const BURST: Duration = Duration::from_secs(2);

/// It asks too fast. Nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the project asks faster than {per_second} times a second")]
pub struct TooFast {
    pub per_second: u64,
    /// By then there is room for one more.
    pub retry_after: Duration,
}

/// It has as many creates under way as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the project has {CREATES_AT_ONCE_MAX} creates under way already")]
pub struct TooManyCreates;

/// What each project has asked for lately.
#[derive(Debug, Default)]
pub struct Rates {
    projects: Arc<Mutex<HashMap<ProjectId, Recent>>>,
}

#[derive(Debug)]
struct Recent {
    /// When everything asked for so far is paid off, at the project's rate.
    paid_at: Instant,
    creates: usize,
    watches: usize,
}

/// A create or fork under way.
#[derive(Debug)]
pub struct CreatePermit(#[expect(dead_code, reason = "given back when dropped")] Share);

/// A stream that follows something.
#[derive(Debug)]
pub struct WatchUnderWay(#[expect(dead_code, reason = "given back when dropped")] Share);

/// One of those that a project may have at once.
#[derive(Debug)]
struct Share {
    projects: Arc<Mutex<HashMap<ProjectId, Recent>>>,
    project: ProjectId,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Create,
    Watch,
}

impl Recent {
    fn count(&mut self, kind: Kind) -> &mut usize {
        match kind {
            Kind::Create => &mut self.creates,
            Kind::Watch => &mut self.watches,
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut projects = lock(&self.projects);
        if let Some(recent) = projects.get_mut(&self.project) {
            let count = recent.count(self.kind);
            *count = count.saturating_sub(1);
        }
    }
}

impl Rates {
    /// Counts one request of a project.
    ///
    /// # Errors
    /// [`TooFast`]; it was not counted.
    pub fn request(
        &self,
        project: &ProjectId,
        per_second: Option<u64>,
        now: Instant,
    ) -> Result<(), TooFast> {
        let Some(per_second) = per_second else {
            return Ok(());
        };
        let mut projects = lock(&self.projects);
        let recent = recent(&mut projects, project, now);
        let cost = Duration::from_secs(1) / u32::try_from(per_second.max(1)).unwrap_or(u32::MAX);
        let paid_at = recent.paid_at.max(now) + cost;
        let ahead = paid_at.saturating_duration_since(now);
        if per_second == 0 || ahead > BURST.max(cost) {
            return Err(TooFast {
                per_second,
                retry_after: ahead.saturating_sub(BURST).max(Duration::from_secs(1)),
            });
        }
        recent.paid_at = paid_at;
        Ok(())
    }

    /// Begins a create of a project. One project's creates cannot take every place that there is.
    ///
    /// # Errors
    /// [`TooManyCreates`].
    pub fn create(
        &self,
        project: &ProjectId,
        now: Instant,
    ) -> Result<CreatePermit, TooManyCreates> {
        let share = self.share(project, Kind::Create, CREATES_AT_ONCE_MAX, now);
        share.map(CreatePermit).ok_or(TooManyCreates)
    }

    /// Begins to follow something. One project's streams cannot take every place that there is.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn watch(&self, project: &ProjectId, now: Instant) -> Result<WatchUnderWay, TooMany> {
        let share = self.share(project, Kind::Watch, WATCHES_AT_ONCE_MAX, now);
        let what = "watches of this project";
        share.map(WatchUnderWay).ok_or(TooMany { what })
    }

    fn share(&self, project: &ProjectId, kind: Kind, max: usize, now: Instant) -> Option<Share> {
        let mut projects = lock(&self.projects);
        let count = recent(&mut projects, project, now).count(kind);
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(Share {
            projects: Arc::clone(&self.projects),
            project: project.clone(),
            kind,
        })
    }
}

fn lock(
    projects: &Mutex<HashMap<ProjectId, Recent>>,
) -> std::sync::MutexGuard<'_, HashMap<ProjectId, Recent>> {
    // Two numbers that are changed one at a time: a panic leaves them whole.
    projects.lock().unwrap_or_else(PoisonError::into_inner)
}

fn recent<'a>(
    projects: &'a mut HashMap<ProjectId, Recent>,
    project: &ProjectId,
    now: Instant,
) -> &'a mut Recent {
    if projects.len() >= PROJECTS_REMEMBERED_MAX && !projects.contains_key(project) {
        projects
            .retain(|_, recent| recent.creates > 0 || recent.watches > 0 || recent.paid_at > now);
    }
    projects.entry(project.clone()).or_insert(Recent {
        paid_at: now,
        creates: 0,
        watches: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(name: &str) -> ProjectId {
        ProjectId::parse(name).unwrap()
    }

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let (rates, now) = (Rates::default(), Instant::now());
        let ask = |at: Instant| rates.request(&project("a"), Some(10), at);
        assert_eq!((0..30).filter(|_| ask(now).is_ok()).count(), 20);
        let refused = ask(now).unwrap_err();
        assert!(refused.retry_after >= Duration::from_secs(1));
        let later = now + Duration::from_secs(1);
        assert_eq!((0..30).filter(|_| ask(later).is_ok()).count(), 10);
        assert!(rates.request(&project("b"), Some(10), now).is_ok());
        assert!(rates.request(&project("a"), None, now).is_ok());
        assert!(rates.request(&project("c"), Some(0), now).is_err());
    }

    #[test]
    fn creates_of_one_project_leave_room_for_another() {
        let (rates, now) = (Rates::default(), Instant::now());
        let mut held: Vec<CreatePermit> = Vec::new();
        for _ in 0..CREATES_AT_ONCE_MAX {
            held.push(rates.create(&project("a"), now).unwrap());
        }
        assert_eq!(
            rates.create(&project("a"), now).unwrap_err(),
            TooManyCreates
        );
        assert!(rates.create(&project("b"), now).is_ok());
        held.pop();
        assert!(rates.create(&project("a"), now).is_ok());
    }
}
