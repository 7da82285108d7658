//! Work on the disk, off the threads that serve calls.
//!
//! A disk may take half a second for a sync, and a thread that waits for it serves nobody: neither
//! the sandbox whose record is written nor any other. So everything that reads or writes files
//! runs on a thread of its own, through here. Which modules hold such work is listed in
//! `xtask/tests/blocking.rs`.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::Mutex;

/// One after the other, in the order of asking: the disk work of one sandbox. Each sandbox has a
/// lane of its own, so none waits for the disk work of another.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskLane(Arc<Mutex<()>>);

impl DiskLane {
    /// Does `work` behind everything that was begun in this lane before. Once begun it is done to
    /// its end, whether or not the caller still waits, and what is asked later waits for that: a
    /// record that was given up in the middle cannot overtake the one that follows it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let turn = Arc::clone(&self.0).lock_owned().await;
        off_runtime(move || {
            let done = work();
            drop(turn);
            done
        })
        .await
    }
}

/// Does work that knows no order on a thread of its own, to its end.
pub(crate) fn off_runtime<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = T> {
    let working = tokio::task::spawn_blocking(work);
    async move {
        match working.await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                // A defect of the work is a defect of whoever asked for it.
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only a runtime that is being dropped refuses work, and it drops this too.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    /// Work that says that it has begun and then waits to be let go.
    fn held() -> (
        impl FnOnce() + Send + 'static,
        mpsc::Receiver<()>,
        mpsc::Sender<()>,
    ) {
        let (began, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let work = move || {
            began.send(()).unwrap();
            released.recv_timeout(LIMIT).unwrap();
        };
        (work, has_begun, release)
    }

    #[tokio::test]
    async fn what_was_given_up_is_not_overtaken() {
        let lane = DiskLane::default();
        let (order, seen) = mpsc::channel();
        let (work, has_begun, release) = held();
        let first = {
            let (lane, order) = (lane.clone(), order.clone());
            tokio::spawn(async move {
                let work = move || {
                    work();
                    order.send(1).unwrap();
                };
                lane.run(work).await;
            })
        };
        off_runtime(move || has_begun.recv_timeout(LIMIT).unwrap()).await;
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        let second = tokio::spawn(async move { lane.run(move || order.send(2).unwrap()).await });
        release.send(()).unwrap();
        second.await.unwrap();
        assert_eq!(seen.iter().collect::<Vec<_>>(), [1, 2]);
    }

    #[tokio::test]
    async fn lanes_do_not_wait_for_each_other() {
        let (work, has_begun, release) = held();
        let slow = DiskLane::default();
        let slow = tokio::spawn(async move { slow.run(work).await });
        off_runtime(move || has_begun.recv_timeout(LIMIT).unwrap()).await;
        assert_eq!(DiskLane::default().run(|| 7).await, 7);
        assert!(!slow.is_finished());
        release.send(()).unwrap();
        slow.await.unwrap();
    }

    #[tokio::test]
    async fn a_defect_of_the_work_reaches_who_asked_and_leaves_the_lane_open() {
        let lane = DiskLane::default();
        let broken = {
            let lane = lane.clone();
            tokio::spawn(async move { lane.run(|| std::panic::resume_unwind(Box::new(()))).await })
        };
        assert!(broken.await.unwrap_err().is_panic());
        assert_eq!(lane.run(|| 3).await, 3);
    }
}
