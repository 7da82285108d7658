//! One project asks for ten times what there is; another one hardly notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dayfly_types::limits::CREATES_AT_ONCE_MAX;
use http::{Method, StatusCode};
use serde_json::json;

use crate::support::World;

/// How long the node takes for one.
const CREATE: Duration = Duration::from_millis(200);
const PHASE: Duration = Duration::from_secs(6);
/// What a client does that was told to come back later, faster than it was told.
const PAUSE: Duration = Duration::from_millis(250);
const OTHERS: usize = 20;

#[derive(Debug, Default)]
struct Counts {
    made: AtomicU64,
    refused: AtomicU64,
    slowest_refusal_ms: AtomicU64,
}

/// Creates again and again until it is told to stop.
async fn press(world: Arc<World>, key: String, counts: Arc<Counts>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let answer = world
            .ask(&key, Method::POST, "/v1/sandboxes", json!({}))
            .await;
        if answer.status == StatusCode::CREATED {
            counts.made.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        assert_eq!(answer.refusal(), "rate_limited");
        counts.refused.fetch_add(1, Ordering::Relaxed);
        let took = u64::try_from(began.elapsed().as_millis()).unwrap();
        counts.slowest_refusal_ms.fetch_max(took, Ordering::Relaxed);
        tokio::time::sleep(PAUSE).await;
    }
}

/// The creates of the other project, one after the other, slowest last.
async fn others(world: &World) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..OTHERS {
        let began = Instant::now();
        let answer = world
            .ask(&world.foreign_key, Method::POST, "/v1/sandboxes", json!({}))
            .await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
        times.push(began.elapsed());
    }
    times.sort();
    times
}

/// Presses with so many clients; gives what they got in a second, and how the other one fared.
async fn under(world: &Arc<World>, clients: usize) -> (f64, Arc<Counts>, Vec<Duration>) {
    let (counts, stop) = (Arc::<Counts>::default(), Arc::<AtomicBool>::default());
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let (world, key) = (Arc::clone(world), world.key.clone());
            tokio::spawn(press(world, key, Arc::clone(&counts), Arc::clone(&stop)))
        })
        .collect();
    let began = Instant::now();
    let times = others(world).await;
    tokio::time::sleep(PHASE.saturating_sub(began.elapsed())).await;
    let per_second = counts.made.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    (per_second, counts, times)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: times depend on a quiet machine"]
async fn another_project_hardly_notices_ten_times_too_many_creates() {
    let world = Arc::new(World::start().await);
    world.node.delay_ensure(CREATE);
    let quiet = others(&world).await;
    let (peak, _, _) = under(&world, CREATES_AT_ONCE_MAX).await;
    let (pressed, counts, times) = under(&world, CREATES_AT_ONCE_MAX * 10).await;
    let last = |times: &[Duration]| *times.last().unwrap();
    let slowest_refusal = counts.slowest_refusal_ms.load(Ordering::Relaxed);
    let figures = format!(
        "the other's slowest of {OTHERS}: {:?} quiet, {:?} pressed; made in a second: {peak:.1} at \
         the limit, {pressed:.1} beyond; {} refused, the slowest after {slowest_refusal} ms",
        last(&quiet),
        last(&times),
        counts.refused.load(Ordering::Relaxed),
    );
    println!("{figures}");
    assert!(last(&times) <= last(&quiet) * 2, "{figures}");
    assert!(slowest_refusal <= 100, "{figures}");
    assert!(pressed >= peak * 0.9, "{figures}");
}
