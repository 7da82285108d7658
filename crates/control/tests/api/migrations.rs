//! Databases of earlier programs.

use std::collections::BTreeMap;
use std::path::Path;

use dayfly_control::sandbox::environment::Environment;
use dayfly_control::store::{
    EgressRow, Idempotency, Inserted, SandboxRow, SandboxSpec, SandboxStatus, Store, StoreError,
    Subject,
};
use dayfly_types::egress::{EgressMode, EgressPolicy};
use dayfly_types::volume::MountedVolume;
use dayfly_types::{
    CpuMillis, DiskMib, Generation, IdleAction, LifetimeRules, NodeId, ProjectId, SandboxClass,
    SandboxId, SandboxState, SnapshotId, TemplateName, VolumeName,
};
use serde_json::{Value, json};
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;

use crate::schema::crate_path;

/// A row with something in every column, as migration 10 left them.
const FULL: &str = r#"INSERT INTO sandboxes VALUES ('sb-local-full', 'default', 'fake', 'base',
    'failed', 7, 'it said "no",
and \n é', '{"a":"b \"c\"","ö":""}', 600, 1, 2, 1024, 'kvm', 12, '{"restore":9007199254740993}',
    1, 99, 30, 'hibernate', 5000, 'snap-local-a', 1500, 2048, 4096,
    '[{"name":"data","path":"/volumes/data","read_only":true},{"name":"b","path":"/b"}]',
    'sb-local-parent', 'tree-1', '{"mode":"public","rules":[]}', 3, 4, 2, 77)"#;

/// A row with nothing in every column that may have nothing.
const EMPTY: &str = r#"INSERT INTO sandboxes VALUES ('sb-local-empty', 'default', 'fake', 'base',
    'running', 0, NULL, '{}', NULL, 0, 1, 512, '', NULL, '{}', 1, NULL, NULL, 'delete', NULL, NULL,
    NULL, NULL, 0, '[]', NULL, NULL, '{"mode":"deny","rules":[]}', 0, 0, 0, 0)"#;

async fn pool(file: &Path) -> SqlitePool {
    let url = format!("sqlite://{}?mode=rwc", file.display());
    SqlitePoolOptions::new().connect(&url).await.unwrap()
}

/// Fills a database as the first migrations left it.
async fn old_database(file: &Path, migrations: usize, statements: &[&'static str]) {
    let pool = pool(file).await;
    let all = sqlx::migrate::Migrator::new(crate_path("migrations"))
        .await
        .unwrap();
    let first: Vec<_> = all.iter().take(migrations).cloned().collect();
    sqlx::migrate::Migrator {
        migrations: first.into(),
        ..sqlx::migrate::Migrator::DEFAULT
    }
    .run(&pool)
    .await
    .unwrap();
    let project = "INSERT INTO projects (id, created_at_ms) VALUES ('default', 1)";
    for statement in [project].iter().chain(statements) {
        sqlx::query(*statement).execute(&pool).await.unwrap();
    }
    pool.close().await;
}

async fn read(store: &Store, id: &str) -> Result<SandboxRow, StoreError> {
    let id = SandboxId::parse(id).unwrap();
    let found = store.sandbox(&ProjectId::default_project(), &id).await;
    found.map(Option::unwrap)
}

/// Asserts that one column of a row cannot be read.
async fn assert_corrupt(store: &Store, id: &str, expected: &str) {
    let error = read(store, id).await.unwrap_err();
    let StoreError::Corrupt { table, column } = error else {
        panic!("{error}");
    };
    assert_eq!((table, column), ("sandboxes", expected));
}

#[tokio::test]
async fn a_database_of_the_first_release_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("control.db");
    let rows = [
        "INSERT INTO sandboxes VALUES ('sb-local-old', 'default', 'fake', 'base', 'running', 3, \
         NULL, '{\"a\":\"b\"}', 600, 0, 1, 512, 'emulated', 12, '{}', 1, NULL)",
        // The digest as programs made it that had no key for it.
        "INSERT INTO idempotency_keys VALUES ('default', 'k', \
         'a2984a68a4cb34fc7ed25e5a774ae8b9bfd304466523b5ba05d7cde72dd90c76', 'sb-local-old', 1)",
    ];
    old_database(&file, 1, &rows).await;
    let store = Store::open(&file).await.unwrap();
    let project = ProjectId::default_project();
    let row = read(&store, "sb-local-old").await.unwrap();
    assert_eq!(row.lifetime.ttl_seconds, Some(600));
    assert_eq!(row.lifetime.idle_seconds, None);
    assert_eq!(row.lifetime.on_timeout, IdleAction::Delete);
    let used = store.used(&project).await.unwrap();
    assert_eq!((used.sandboxes, used.vcpus, used.memory_mb), (1, 1, 512));
    let spec = row.spec;
    assert_eq!(
        (spec.from_snapshot, spec.fork_parent, row.fork_tree),
        (None, None, None)
    );
    assert_eq!(row.egress.policy, EgressPolicy::deny());
    assert_eq!((row.egress.epoch, row.egress.is_widening()), (0, false));
    let unconfirmed = store.unconfirmed_networks(&row.node).await.unwrap();
    assert!(unconfirmed.is_empty());
    assert_eq!(store.network_default(&project).await.unwrap(), None);
    assert!(spec.volumes.is_empty() && spec.cpu_limit.is_none() && spec.disk_wanted.is_none());
    let idempotency = Idempotency {
        key: "k".to_owned(),
        request_hash: store.hash_of(&"a request"),
    };
    let known = store
        .insert_key(&project, "new", &idempotency, 2)
        .await
        .unwrap();
    let subject = Subject {
        id: "sb-local-old".to_owned(),
        answer: None,
    };
    assert_eq!(known, Inserted::Repeated(subject));
    let other = Idempotency {
        request_hash: store.hash_of(&"another"),
        ..idempotency
    };
    let known = store.insert_key(&project, "new", &other, 2).await.unwrap();
    assert_eq!(known, Inserted::Conflict);
    store.close().await;
    // A second start finds nothing to do.
    Store::open(&file).await.unwrap().close().await;
}

fn mounted(name: &str, path: &str, read_only: bool) -> MountedVolume {
    MountedVolume {
        name: VolumeName::parse(name).unwrap(),
        path: path.to_owned(),
        read_only,
    }
}

/// What [`EMPTY`] says.
pub(crate) fn empty() -> SandboxRow {
    SandboxRow {
        id: SandboxId::parse("sb-local-empty").unwrap(),
        project: ProjectId::default_project(),
        node: NodeId::parse("fake").unwrap(),
        state: SandboxState::Running,
        generation: Generation(0),
        name: None,
        spec: SandboxSpec {
            template: TemplateName::parse("base").unwrap(),
            called: None,
            size: None,
            metadata: BTreeMap::new(),
            cpu_limit: None,
            disk_wanted: None,
            from_snapshot: None,
            disk_only: false,
            volumes: Vec::new(),
            class: SandboxClass::Reserved,
            fork_parent: None,
            isolation: String::new(),
        },
        environment: Environment::default(),
        status: SandboxStatus::default(),
        lifetime: LifetimeRules::default(),
        expires_at_ms: None,
        cpu: 1,
        memory_mb: 512,
        disk_mib: 0,
        fork_tree: None,
        egress: EgressRow {
            policy: EgressPolicy::deny(),
            epoch: 0,
            reserved: 0,
            confirmed: 0,
            changed_at_ms: 0,
        },
        created_at_ms: 1,
        deleted_at_ms: None,
        ended: None,
    }
}

/// What [`FULL`] says.
fn full() -> SandboxRow {
    let label = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    SandboxRow {
        id: SandboxId::parse("sb-local-full").unwrap(),
        state: SandboxState::Failed,
        generation: Generation(7),
        spec: SandboxSpec {
            template: TemplateName::parse("base").unwrap(),
            called: None,
            size: None,
            metadata: [("a", "b \"c\""), ("ö", "")].map(label).into(),
            cpu_limit: Some(CpuMillis::new(1500).unwrap()),
            disk_wanted: Some(DiskMib::new(2048).unwrap()),
            from_snapshot: Some(SnapshotId::parse("snap-local-a").unwrap()),
            disk_only: false,
            volumes: vec![
                mounted("data", "/volumes/data", true),
                mounted("b", "/b", false),
            ],
            class: SandboxClass::Reserved,
            fork_parent: Some(SandboxId::parse("sb-local-parent").unwrap()),
            isolation: "kvm".to_owned(),
        },
        status: SandboxStatus {
            reason: Some("it said \"no\",\nand \\n é".to_owned()),
            ready_ms: Some(12),
            stages: [("restore".to_owned(), 9_007_199_254_740_993)].into(),
        },
        lifetime: LifetimeRules {
            ttl_seconds: Some(600),
            persistent: true,
            idle_seconds: Some(30),
            on_timeout: IdleAction::Hibernate,
        },
        expires_at_ms: Some(5000),
        cpu: 2,
        memory_mb: 1024,
        disk_mib: 4096,
        fork_tree: Some("tree-1".to_owned()),
        egress: EgressRow {
            policy: EgressPolicy::new(EgressMode::Public, Vec::new()).unwrap(),
            epoch: 3,
            reserved: 4,
            confirmed: 2,
            changed_at_ms: 77,
        },
        deleted_at_ms: Some(99),
        ..empty()
    }
}

#[tokio::test]
async fn rows_of_columns_say_the_same_as_documents() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("control.db");
    let link = "INSERT INTO port_links VALUES \
        ('link', 'default', 'sb-local-full', 80, NULL, 1, 9000, NULL)";
    old_database(&file, 10, &[FULL, EMPTY, link]).await;
    let store = Store::open(&file).await.unwrap();
    assert_eq!(read(&store, "sb-local-full").await.unwrap(), full());
    assert_eq!(read(&store, "sb-local-empty").await.unwrap(), empty());
    store.close().await;
    let links: (i64,) = sqlx::query_as("SELECT COUNT(*) FROM port_links")
        .fetch_one(&pool(&file).await)
        .await
        .unwrap();
    assert_eq!(links, (1,), "the links of a sandbox outlive its conversion");
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_converted_and_stays_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("control.db");
    let spoil =
        "UPDATE sandboxes SET metadata = '{\"a', ttl_seconds = -1 WHERE id = 'sb-local-full'";
    old_database(&file, 10, &[FULL, EMPTY, spoil]).await;
    let store = Store::open(&file).await.unwrap();
    assert_corrupt(&store, "sb-local-full", "spec").await;
    assert_eq!(read(&store, "sb-local-empty").await.unwrap(), empty());
    store.close().await;
    let kept: (String, String) =
        sqlx::query_as("SELECT spec, lifetime FROM sandboxes WHERE id = 'sb-local-full'")
            .fetch_one(&pool(&file).await)
            .await
            .unwrap();
    let kept: [Value; 2] = [kept.0, kept.1].map(|text| serde_json::from_str(&text).unwrap());
    assert_eq!(
        (&kept[0]["metadata"], &kept[1]["ttl_seconds"]),
        (&json!("{\"a"), &json!(-1))
    );
}

#[tokio::test]
async fn a_field_of_a_later_program_is_kept_and_a_missing_one_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("control.db");
    let store = Store::open(&file).await.unwrap();
    let project = ProjectId::default_project();
    store.ensure_project(&project, 1).await.unwrap();
    store.adopt_sandbox(&empty(), 1).await.unwrap();
    let other = pool(&file).await;
    let mut spec = serde_json::to_value(&empty().spec).unwrap();
    spec["of_a_later_program"] = json!(true);
    let set =
        |statement: &'static str, text: String| sqlx::query(statement).bind(text).execute(&other);
    let (set_spec, set_status, set_lifetime) = (
        "UPDATE sandboxes SET spec = $1",
        "UPDATE sandboxes SET status = $1",
        "UPDATE sandboxes SET lifetime = $1",
    );
    set(set_spec, spec.to_string()).await.unwrap();
    let report = json!({"id": "sb-local-empty", "project": "default", "template": "base",
        "state": "paused", "generation": 1, "memory": 512, "vcpus": 1});
    let report = serde_json::from_value(report).unwrap();
    store.apply_report(&report, 2).await.unwrap();
    let row = read(&store, "sb-local-empty").await.unwrap();
    assert_eq!((row.state, row.spec), (SandboxState::Paused, empty().spec));
    let kept: (String,) = sqlx::query_as("SELECT spec FROM sandboxes")
        .fetch_one(&other)
        .await
        .unwrap();
    assert_eq!(serde_json::from_str::<Value>(&kept.0).unwrap(), spec);
    // Each is read before the one that was spoilt before it.
    for (statement, text, column) in [
        (set_lifetime, "", "lifetime"),
        (set_status, "{}", "status"),
        (set_spec, "{\"template\":\"base\"}", "spec"),
    ] {
        set(statement, text.to_owned()).await.unwrap();
        assert_corrupt(&store, "sb-local-empty", column).await;
    }
}
