//! What a create costs does not depend on how many sandboxes there are: what a project uses is kept
//! with each change and never added up, so it must be right after any of them.

use std::path::Path;

use dayfly_control::store::{Ending, KeyFate, SandboxRow, Store, Used};
use dayfly_types::{
    DiskMib, EndReason, Generation, MemoryMib, ProjectId, SandboxId, SandboxState, Vcpus,
};
use proptest::test_runner::{Config, TestRunner};
use sqlx::sqlite::SqlitePoolOptions;

use crate::metering::report;
use crate::migrations;

/// What is added up from the rows themselves.
const ADDED_UP: &str = "SELECT COUNT(*), COALESCE(SUM(cpu), 0), COALESCE(SUM(memory_mb), 0), \
    COALESCE(SUM(disk_mib), 0) FROM sandboxes WHERE project_id = ?1 AND deleted_at_ms IS NULL";
const IDS: u8 = 6;

fn project() -> ProjectId {
    ProjectId::default_project()
}

fn id(number: u8) -> SandboxId {
    SandboxId::parse(&format!("sb-local-{number}")).unwrap()
}

async fn added_up(file: &Path) -> Used {
    let url = format!("sqlite://{}", file.display());
    let pool = SqlitePoolOptions::new().connect(&url).await.unwrap();
    let sums: (i64, i64, i64, i64) = sqlx::query_as(ADDED_UP)
        .bind(project().as_str())
        .fetch_one(&pool)
        .await
        .unwrap();
    pool.close().await;
    Used::from(sums)
}

/// One step of what can become of a sandbox, whether or not it fits what there is.
async fn step(store: &Store, kind: u8, number: u8, size: u16, at_ms: i64) {
    let (id, project) = (id(number), project());
    let known = store.sandbox(&project, &id).await.unwrap();
    let deleted = Ending::from(EndReason::Deleted);
    match (kind, known) {
        (0 | 1, None) => {
            let row = SandboxRow {
                id,
                cpu: u32::from(size % 7),
                memory_mb: u64::from(size),
                disk_mib: u64::from(size) * 3,
                ..migrations::empty()
            };
            if kind == 0 {
                let inserted = store.insert_sandbox(&row, None).await.unwrap();
                inserted.unwrap();
            } else {
                store.adopt_sandbox(&row, at_ms).await.unwrap();
            }
        }
        (2 | 3, Some(row)) => {
            let news = dayfly_node_api::SandboxReport {
                state: match kind {
                    2 => SandboxState::Running,
                    _ => SandboxState::Paused,
                },
                generation: Generation(row.generation.0 + u64::from(size % 2)),
                vcpus: Vcpus::new(u64::from(size % 4) + 1).unwrap(),
                memory: MemoryMib::new(512).unwrap(),
                disk_mib: u64::from(DiskMib::new(64).unwrap().get()) + u64::from(size),
                ..report(&id)
            };
            store.apply_report(&news, at_ms).await.unwrap();
        }
        (4, _) => store.forget(&project, &id, at_ms).await.unwrap(),
        (5, _) => {
            let marked = store.mark_deleting(&project, &id, &deleted, KeyFate::Kept);
            marked.await.unwrap();
        }
        (6, _) => {
            let marked = store.mark_deleted(&project, &id, &deleted, at_ms);
            marked.await.unwrap();
        }
        _ => {}
    }
}

#[test]
fn what_a_project_uses_is_the_sum_over_its_sandboxes() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = Config {
        cases: 24,
        failure_persistence: None,
        ..Config::default()
    };
    let steps = proptest::collection::vec((0..7_u8, 0..IDS, 0..2000_u16), 1..30);
    let tried = TestRunner::new(config).run(&steps, |steps| {
        runtime.block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("control.db");
            let store = Store::open(&file).await.unwrap();
            store.ensure_project(&project(), 1).await.unwrap();
            for (at_ms, (kind, number, size)) in (10_i64..).zip(steps) {
                step(&store, kind, number, size, at_ms).await;
            }
            let used = store.used(&project()).await.unwrap();
            assert_eq!(used, added_up(&file).await);
            store.close().await;
        });
        Ok(())
    });
    tried.unwrap();
}
