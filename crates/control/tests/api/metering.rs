//! What sandboxes use over their lives, and projects by the hour: the rows, whatever ends the process
//! that writes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dayfly_control::store::{Amounts, HourSpan, PurgeBefore, SampleRow, SandboxRow, Store};
use dayfly_node_api::{EnsureSandbox, ResourceUse, SandboxReport};
use dayfly_types::egress::EgressPolicy;
use dayfly_types::limits::SAMPLES_NEWEST;
use dayfly_types::{
    EndReason, Generation, LifetimeRules, ProjectId, SandboxClass, SandboxId, SandboxState,
};
use sqlx::sqlite::SqlitePoolOptions;

use crate::migrations;
use crate::support::made;

const HOUR: i64 = 3_600_000;
/// The beginning of an hour.
const START: i64 = 500_000 * HOUR;

/// A database that is closed and opened again, as a new process does.
struct Books {
    file: PathBuf,
    store: Store,
    _directory: tempfile::TempDir,
}

impl Books {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("control.db");
        let store = Store::open(&file).await.unwrap();
        store.ensure_project(&project(), 1).await.unwrap();
        Self {
            file,
            store,
            _directory: directory,
        }
    }

    /// As after a SIGKILL: nothing is closed, and what was committed is there.
    async fn open_again(&mut self) {
        self.store = Store::open(&self.file).await.unwrap();
    }

    /// A sandbox that came to run at a moment.
    async fn run(&self, name: &str, at_ms: i64) -> SandboxId {
        let id = SandboxId::parse(name).unwrap();
        let row = SandboxRow {
            id: id.clone(),
            state: SandboxState::Creating,
            created_at_ms: at_ms,
            ..migrations::empty()
        };
        let inserted = self.store.insert_sandbox(&row, None).await.unwrap();
        inserted.unwrap();
        self.comes_into(&id, SandboxState::Running, at_ms).await;
        id
    }

    async fn comes_into(&self, id: &SandboxId, state: SandboxState, at_ms: i64) {
        let row = self.store.sandbox(&project(), id).await.unwrap().unwrap();
        let report = SandboxReport {
            state,
            generation: Generation(row.generation.0 + 1),
            ..report(id)
        };
        self.store.apply_report(&report, at_ms).await.unwrap();
    }

    async fn samples(&self, id: &SandboxId) -> Vec<SampleRow> {
        let all = (i64::MIN, i64::MAX);
        let read = self.store.samples(&project(), id, all, 5000).await;
        read.unwrap()
    }

    async fn hours(&self) -> Vec<(i64, Amounts)> {
        let span = HourSpan {
            since_ms: i64::MIN,
            until_ms: i64::MAX,
            after: None,
            limit: 10_000,
        };
        let rows = self.store.usage_hours(&project(), &span).await.unwrap();
        rows.iter()
            .map(|row| ((row.hour_ms - START) / HOUR, row.amounts))
            .collect()
    }

    async fn running_ms(&self) -> i64 {
        let hours = self.hours().await;
        hours.iter().map(|(_, amounts)| amounts.running_ms).sum()
    }
}

fn project() -> ProjectId {
    ProjectId::default_project()
}

/// What the node says: one vCPU and 512 MiB.
pub(crate) fn report(id: &SandboxId) -> SandboxReport {
    made(EnsureSandbox {
        id: id.clone(),
        project: project(),
        template: migrations::empty().spec.template,
        size: None,
        from_snapshot: None,
        lifecycle: LifetimeRules::default(),
        cpu: None,
        disk: None,
        volumes: Vec::new(),
        reseed_user_space: false,
        egress: EgressPolicy::deny(),
        egress_epoch: 0,
        metadata: BTreeMap::new(),
        created_at_ms: None,
        class: SandboxClass::Reserved,
    })
}

fn used(id: &SandboxId, machine: &str, cpu_seconds: u64) -> ResourceUse {
    ResourceUse {
        id: id.clone(),
        cpu_micros: cpu_seconds * 1_000_000,
        memory_bytes: 64 << 20,
        disk_bytes: 1 << 20,
        network_in_bytes: cpu_seconds * 100,
        network_out_bytes: cpu_seconds * 10,
        machine: machine.to_owned(),
    }
}

#[tokio::test]
async fn a_life_is_counted_once_whatever_ends_the_process_that_counts() {
    let mut books = Books::open().await;
    let id = books.run("sb-local-one", START).await;
    let mut at_ms = START;
    for cpu_seconds in 1..=30 {
        at_ms += 10_000;
        let uses = [used(&id, "first", cpu_seconds)];
        books.store.add_samples(&uses, at_ms).await.unwrap();
        // The same again, as of a process that does not know how far the last one came.
        books.open_again().await;
        books.store.add_samples(&uses, at_ms).await.unwrap();
    }
    assert_eq!(books.running_ms().await, 300_000);
    // Nobody looks for an hour, and the machine is still there.
    at_ms += HOUR;
    let uses = [used(&id, "first", 100)];
    books.store.add_samples(&uses, at_ms).await.unwrap();
    at_ms += 3000;
    let ended = EndReason::Lost.into();
    let (store, project) = (&books.store, project());
    let deleted = store.mark_deleted(&project, &id, &ended, at_ms);
    deleted.await.unwrap();
    let hours = books.hours().await;
    let [(0, first), (1, second)] = hours[..] else {
        panic!("{hours:?}");
    };
    assert_eq!(first.started, 1);
    assert_eq!(first.running_ms, HOUR);
    assert_eq!(second.running_ms, 303_000);
    let both = |amount: fn(Amounts) -> i64| amount(first) + amount(second);
    assert_eq!(both(|it| it.vcpu_ms), both(|it| it.running_ms));
    assert_eq!(both(|it| it.memory_mb_ms), 512 * both(|it| it.running_ms));
    assert_eq!(both(|it| it.cpu_us), 100_000_000);
    assert_eq!(
        (both(|it| it.in_bytes), both(|it| it.out_bytes)),
        (10_000, 1000)
    );
    assert_eq!(books.samples(&id).await, [], "they go with the sandbox");
    // What was on its way when it was deleted brings nothing back.
    let late = [used(&id, "first", 500)];
    books.store.add_samples(&late, at_ms + 1).await.unwrap();
    assert_eq!(books.hours().await, hours);
}

#[tokio::test]
async fn sleep_is_a_gap_and_counters_go_on_over_machines() {
    let books = Books::open().await;
    let id = books.run("sb-local-one", START).await;
    let sample = async |machine, cpu_seconds, at_ms| {
        let uses = [used(&id, machine, cpu_seconds)];
        books.store.add_samples(&uses, at_ms).await.unwrap();
    };
    sample("first", 5, START + 10_000).await;
    let asleep = SandboxState::Hibernated;
    books.comes_into(&id, asleep, START + 12_000).await;
    // A list that was made before it slept.
    sample("first", 9, START + 12_001).await;
    let awake = SandboxState::Running;
    books.comes_into(&id, awake, START + 100_000).await;
    sample("second", 2, START + 105_000).await;
    let samples = books.samples(&id).await;
    let seen: Vec<_> = samples
        .iter()
        .map(|it| (it.at_ms - START, it.cpu_us / 1_000_000, it.in_bytes))
        .collect();
    assert_eq!(seen, [(10_000, 5, 500), (105_000, 7, 700)]);
    let [(0, amounts)] = books.hours().await[..] else {
        panic!("one hour");
    };
    assert_eq!((amounts.running_ms, amounts.started), (17_000, 1));
    // The end of a machine that nobody saw for long is not known: it counts to where it was seen.
    let failed = SandboxState::Failed;
    books.comes_into(&id, failed, START + 900_000).await;
    assert_eq!(books.running_ms().await, 17_000);
    // In between it may be asked for a part.
    let late = (START + 50_000, i64::MAX);
    let part = books.store.samples(&project(), &id, late, 10).await;
    assert_eq!(part.unwrap(), samples[1..]);
    let newest = books.store.samples(&project(), &id, (0, i64::MAX), 1).await;
    assert_eq!(newest.unwrap(), samples[1..]);
    let other = ProjectId::parse("other").unwrap();
    let foreign = books.store.samples(&other, &id, late, 10).await;
    assert_eq!(foreign.unwrap(), []);
}

#[tokio::test]
async fn a_clock_that_is_set_neither_adds_time_nor_takes_it() {
    let books = Books::open().await;
    let id = books.run("sb-local-one", START).await;
    let sample = async |at_ms| {
        let uses = [used(&id, "first", 1)];
        books.store.add_samples(&uses, at_ms).await.unwrap();
    };
    sample(START + 10_000).await;
    let year = 365 * 24 * HOUR;
    let since = |at_ms| (at_ms, at_ms + 10_000);
    let shift = async |by_ms, written| books.store.shift_meters(by_ms, written).await.unwrap();
    shift(year, since(START + 10_000)).await;
    // What the new clock has written stays.
    shift(year, since(START + 10_000)).await;
    sample(START + 20_000 + year).await;
    shift(-year, since(START + 20_000 + year)).await;
    sample(START + 30_000).await;
    assert_eq!(books.running_ms().await, 30_000);
    // Backwards without a word: nothing is counted twice.
    sample(START + 5000).await;
    assert_eq!(books.running_ms().await, 30_000);
    // Nor when one who waited for the writer comes behind somebody who began later.
    sample(START + 40_000).await;
    assert_eq!(books.running_ms().await, 40_000);
}

/// As many samples as an addition of each alone leaves.
fn kept(count: i64) -> Vec<i64> {
    let is_kept = |number: &i64| count - number < SAMPLES_NEWEST << number.trailing_zeros();
    (1..=count).filter(is_kept).collect()
}

#[tokio::test]
async fn a_long_life_keeps_its_newest_samples_and_thins_out_older_ones() {
    let books = Books::open().await;
    let id = books.run("sb-local-one", START).await;
    for number in 1..=1500 {
        let uses = [used(&id, "first", 1)];
        let at_ms = START + number * 10_000;
        books.store.add_samples(&uses, at_ms).await.unwrap();
    }
    let numbers: Vec<i64> = books
        .samples(&id)
        .await
        .iter()
        .map(|it| it.number)
        .collect();
    assert_eq!(numbers, kept(1500));
    let newest: Vec<i64> = (1500 - SAMPLES_NEWEST + 1..=1500).collect();
    assert!(numbers.ends_with(&newest), "{numbers:?}");
    let year = 365 * 24 * 360;
    assert!(kept(year).len() < 1010, "{}", kept(year).len());
    // The spaces between samples grow with their age and never by more.
    for two in kept(year).windows(2) {
        let (space, age) = (two[1] - two[0], year - two[0]);
        assert!(space <= 1 + 2 * age / SAMPLES_NEWEST, "{two:?}");
    }
}

#[tokio::test]
async fn samples_are_bounded_in_all_and_those_that_slept_longest_lose_theirs_first() {
    let books = Books::open().await;
    let mut ids = Vec::new();
    for number in 0..40 {
        let id = books.run(&format!("sb-local-{number}"), START).await;
        for turn in 0..3 {
            let at_ms = START + number * 100_000 + turn * 10_000;
            let uses = [used(&id, "first", 1)];
            books.store.add_samples(&uses, at_ms).await.unwrap();
        }
        ids.push(id);
    }
    books.store.trim_samples(120).await.unwrap();
    assert_eq!(books.samples(&ids[0]).await.len(), 3, "there was room");
    books.store.trim_samples(80).await.unwrap();
    let mut left = Vec::new();
    for id in &ids {
        left.push(books.samples(id).await.len());
    }
    let first_left = left.iter().position(|count| *count > 0).unwrap();
    assert!(left[first_left..].iter().all(|count| *count == 3));
    assert!((40..=80).contains(&left.iter().sum::<usize>()), "{left:?}");
}

#[tokio::test]
async fn a_sandbox_that_ran_before_there_were_meters_is_counted_from_now_on() {
    let books = Books::open().await;
    let row = SandboxRow {
        created_at_ms: START,
        ..migrations::empty()
    };
    books
        .store
        .insert_sandbox(&row, None)
        .await
        .unwrap()
        .unwrap();
    let forget = "DELETE FROM sandbox_meters";
    change(&books.file, forget).await;
    for turn in 1..=3 {
        let seconds = 1000 + u64::try_from(turn).unwrap();
        let uses = [used(&row.id, "first", seconds)];
        let at_ms = START + HOUR + turn * 10_000;
        books.store.add_samples(&uses, at_ms).await.unwrap();
    }
    assert_eq!(books.running_ms().await, 20_000);
    let samples = books.samples(&row.id).await;
    let used: Vec<i64> = samples.iter().map(|sample| sample.cpu_us).collect();
    assert_eq!(
        used,
        [0, 1_000_000, 2_000_000],
        "what it used before is nobody's"
    );
    assert_eq!(books.samples(&row.id).await.len(), 3);
}

async fn change(file: &Path, statement: &'static str) {
    let url = format!("sqlite://{}", file.display());
    let pool = SqlitePoolOptions::new().connect(&url).await.unwrap();
    sqlx::query(statement).execute(&pool).await.unwrap();
    pool.close().await;
}

#[tokio::test]
async fn hours_come_in_pages_and_go_when_they_are_old() {
    let books = Books::open().await;
    let id = books.run("sb-local-one", START).await;
    let uses = [used(&id, "first", 1)];
    books
        .store
        .add_samples(&uses, START + 5 * HOUR)
        .await
        .unwrap();
    let span = |since_ms, until_ms, limit| HourSpan {
        since_ms,
        until_ms,
        after: None,
        limit,
    };
    let hours = async |span: HourSpan| {
        let one = books.store.usage_hours(&project(), &span).await.unwrap();
        let all = books.store.all_usage_hours(&span).await.unwrap();
        assert_eq!(one, all);
        one.iter()
            .map(|row| (row.hour_ms - START) / HOUR)
            .collect::<Vec<_>>()
    };
    assert_eq!(hours(span(0, i64::MAX, 10)).await, [0, 1, 2, 3, 4, 5]);
    // Whoever bills a day gets the hours of that day.
    let of_two = span(START + HOUR, START + 3 * HOUR, 10);
    assert_eq!(hours(of_two).await, [1, 2]);
    let in_the_middle = span(START + HOUR + 1, START + 2 * HOUR + 1, 10);
    assert_eq!(hours(in_the_middle).await, [1, 2]);
    assert_eq!(hours(span(0, i64::MAX, 2)).await, [0, 1]);
    let purge = PurgeBefore {
        deleted_ms: 0,
        keys_ms: 0,
        events_ms: 0,
        audit_ms: 0,
        usage_ms: START + 2 * HOUR,
    };
    books.store.purge(purge).await.unwrap();
    assert_eq!(hours(span(0, i64::MAX, 10)).await, [2, 3, 4, 5]);
}
