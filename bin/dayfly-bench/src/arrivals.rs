//! Many starts at once, or so many a second, of whatever can be started.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// What is started, and ended afterwards.
pub(crate) trait Starter: Send + Sync + 'static {
    type Started: Send + 'static;

    /// From nothing to the response of the first `true`.
    fn start(&self) -> impl Future<Output = Result<Self::Started>> + Send;
    fn end(&self, started: Self::Started) -> impl Future<Output = Result<()>> + Send;
}

/// How many, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrivals {
    pub(crate) n: usize,
    /// So many are under way at most; the next begins when one is done.
    pub(crate) at_once: usize,
    /// So many begin in a second, or else as soon as they can.
    pub(crate) rate: Option<f64>,
}

/// What came of them.
#[derive(Debug)]
pub(crate) struct Arrived {
    /// Of each that was started: how long that took.
    pub(crate) took: Vec<Duration>,
    /// From the beginning of the first to the end of the last start.
    pub(crate) last: Duration,
    /// Why the others were not started.
    pub(crate) failures: Vec<anyhow::Error>,
}

/// One start.
struct One<T> {
    took: Duration,
    ended: Instant,
    started: Result<T>,
}

impl Arrivals {
    /// Whether all of them begin at the same time. Then they are ended together, unmeasured.
    pub(crate) fn are_one_burst(&self) -> bool {
        self.rate.is_none() && self.n <= self.at_once
    }

    /// When one begins, behind the first.
    fn due(&self, index: usize) -> Duration {
        let due = self.rate.map(|rate| index as f64 / rate);
        due.map_or(Duration::ZERO, Duration::from_secs_f64)
    }

    /// Starts all of them, and ends what was started.
    pub(crate) async fn drive<S: Starter>(&self, starter: &Arc<S>) -> Result<Arrived> {
        let places = Arc::new(Semaphore::new(self.at_once));
        let is_kept = self.are_one_burst();
        let begin = Instant::now();
        let mut starts = JoinSet::new();
        for index in 0..self.n {
            let (starter, places) = (Arc::clone(starter), Arc::clone(&places));
            let due = begin + self.due(index);
            starts.spawn(async move {
                tokio::time::sleep_until(due).await;
                let _place = places.acquire().await.context("no place")?;
                let one = start_one(starter.as_ref()).await;
                if is_kept {
                    return Ok(one);
                }
                end_one(starter.as_ref(), one).await
            });
        }
        let mut arrived = Arrived {
            took: Vec::new(),
            last: Duration::ZERO,
            failures: Vec::new(),
        };
        let mut kept = Vec::new();
        while let Some(start) = starts.join_next().await {
            let one = start.context("a start broke off")??;
            arrived.last = arrived.last.max(one.ended - begin);
            match one.started {
                Ok(started) => {
                    arrived.took.push(one.took);
                    kept.extend(started);
                }
                Err(error) => arrived.failures.push(error),
            }
        }
        for started in kept {
            starter.end(started).await?;
        }
        Ok(arrived)
    }
}

async fn start_one<S: Starter>(starter: &S) -> One<Option<S::Started>> {
    let start = Instant::now();
    let started = starter.start().await;
    One {
        took: start.elapsed(),
        ended: Instant::now(),
        started: started.map(Some),
    }
}

async fn end_one<S: Starter>(
    starter: &S,
    mut one: One<Option<S::Started>>,
) -> Result<One<Option<S::Started>>> {
    if let Ok(started) = &mut one.started
        && let Some(started) = started.take()
    {
        starter.end(started).await?;
    }
    Ok(one)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use anyhow::bail;

    use super::*;

    /// Counts, and refuses every fourth.
    #[derive(Debug, Default)]
    struct Counter {
        running: AtomicUsize,
        most: AtomicUsize,
        asked: AtomicUsize,
    }

    impl Starter for Counter {
        type Started = ();

        async fn start(&self) -> Result<()> {
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(running, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(2)).await;
            if self.asked.fetch_add(1, Ordering::SeqCst) % 4 == 3 {
                self.running.fetch_sub(1, Ordering::SeqCst);
                bail!("refused");
            }
            Ok(())
        }

        async fn end(&self, (): ()) -> Result<()> {
            self.running.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    }

    #[tokio::test]
    async fn no_more_are_under_way_than_asked_for_and_all_are_ended() {
        let counter = Arc::new(Counter::default());
        let arrivals = Arrivals {
            n: 12,
            at_once: 3,
            rate: None,
        };
        assert!(!arrivals.are_one_burst());
        let arrived = arrivals.drive(&counter).await.unwrap();
        assert_eq!((arrived.took.len(), arrived.failures.len()), (9, 3));
        assert_eq!(counter.most.load(Ordering::SeqCst), 3);
        assert_eq!(counter.running.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn one_burst_is_kept_until_its_last_has_started() {
        let counter = Arc::new(Counter::default());
        let arrivals = Arrivals {
            n: 3,
            at_once: 5,
            rate: None,
        };
        assert!(arrivals.are_one_burst());
        let arrived = arrivals.drive(&counter).await.unwrap();
        assert!(arrived.took.iter().all(|took| *took <= arrived.last));
        assert_eq!(counter.most.load(Ordering::SeqCst), 3);
        assert_eq!(counter.running.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_rate_says_when_each_begins() {
        let arrivals = Arrivals {
            n: 21,
            at_once: 5,
            rate: Some(10.0),
        };
        assert_eq!(arrivals.due(0), Duration::ZERO);
        assert_eq!(arrivals.due(20), Duration::from_secs(2));
    }
}
