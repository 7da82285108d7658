use std::path::PathBuf;

use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use super::*;

const LIMIT: Duration = Duration::from_secs(5);
const GREETING: &str = r#"{"QMP": {"version": {}, "capabilities": []}}"#;

struct Engine {
    socket: PathBuf,
    task: JoinHandle<()>,
    _directory: tempfile::TempDir,
}

/// Answers each request with the next reply; `@` stands for the id of the request.
fn engine(replies: &'static [&'static str]) -> Engine {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory
        .path()
        .canonicalize()
        .unwrap()
        .join("monitor.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        stream
            .write_all(format!("{GREETING}\n").as_bytes())
            .await
            .unwrap();
        for reply in replies {
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            let request: Value = serde_json::from_str(&line).unwrap();
            let reply = reply.replace('@', &request["id"].to_string());
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
    });
    Engine {
        socket,
        task,
        _directory: directory,
    }
}

const READY: &str = "{\"return\": {}, \"id\": @}\n";

#[tokio::test]
async fn a_refusal_carries_the_command_and_the_engines_words() {
    let engine = engine(&[
        READY,
        "{\"error\": {\"class\": \"X\", \"desc\": \"no\"}, \"id\": @}\n",
    ]);
    let mut monitor = Monitor::open(&engine.socket, LIMIT).await.unwrap();
    let error = monitor
        .execute("cont", Value::Null, LIMIT)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "command cont was refused: no");
}

#[tokio::test]
async fn a_migration_ends_with_its_event_even_when_that_comes_before_the_answer() {
    let engine = engine(&[
        READY,
        "{\"event\": \"MIGRATION\", \"data\": {\"status\": \"setup\"}}\n\
         {\"event\": \"MIGRATION\", \"data\": {\"status\": \"completed\"}}\n\
         {\"event\": \"SOMETHING_NEW\"}\n{\"return\": {}, \"id\": @}\n",
    ]);
    let mut monitor = Monitor::open(&engine.socket, LIMIT).await.unwrap();
    monitor
        .migrate("migrate", Path::new("/run/device.state"))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_failed_migration_tells_why() {
    let engine = engine(&[
        READY,
        "{\"return\": {}, \"id\": @}\n\
         {\"event\": \"MIGRATION\", \"data\": {\"status\": \"failed\"}}\n",
        "{\"return\": {\"status\": \"failed\", \"error-desc\": \"disk full\"}, \"id\": @}\n",
    ]);
    let mut monitor = Monitor::open(&engine.socket, LIMIT).await.unwrap();
    let result = monitor.migrate("migrate", Path::new("/x")).await;
    assert_eq!(
        result.unwrap_err().to_string(),
        "the migration ended as failed: disk full"
    );
}

#[tokio::test]
async fn an_engine_that_goes_away_closes_the_conversation() {
    let engine = engine(&[READY]);
    let mut monitor = Monitor::open(&engine.socket, LIMIT).await.unwrap();
    engine.task.await.unwrap();
    let error = monitor
        .execute("cont", Value::Null, LIMIT)
        .await
        .unwrap_err();
    assert!(
        matches!(error, MonitorError::Closed | MonitorError::Exchange(_)),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_endless_line_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory
        .path()
        .canonicalize()
        .unwrap()
        .join("monitor.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let flood = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        while stream.write_all(&[b'x'; 64 << 10]).await.is_ok() {}
    });
    let error = Monitor::open(&socket, LIMIT).await.unwrap_err();
    assert!(
        matches!(error, MonitorError::MessageTooLong { .. }),
        "{error:?}"
    );
    flood.await.unwrap();
}

#[tokio::test]
async fn a_silent_engine_times_out() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory
        .path()
        .canonicalize()
        .unwrap()
        .join("monitor.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    let limit = Duration::from_millis(30);
    let error = Monitor::open(&socket, limit).await.unwrap_err();
    assert!(
        matches!(error, MonitorError::TimedOut(found) if found == limit),
        "{error:?}"
    );
}

#[test]
fn words_of_the_engine_are_cut_and_plain() {
    let text = shortened(&format!("a\u{1b}[31m\n{}", "b".repeat(2000)));
    assert_eq!(text.chars().count(), DESCRIPTION_CHARACTERS_MAX);
    assert!(text.starts_with("a [31m b"));
}

#[test]
fn a_file_is_known_by_its_node_when_the_engine_cuts_its_name_off() {
    let whole =
        r#"json:{"driver": "qcow2", "file": {"driver": "file", "filename": "/run/disk-3.img"}}"#;
    assert_eq!(plain_file_name(whole).as_deref(), Some("disk-3.img"));
    let cut = r#"json:{"backing": {"backing": {"driver": "qcow2", "fi..."#;
    assert_eq!(plain_file_name(cut), None);
    assert_eq!(file_of_node("disk-3").as_deref(), Some("disk-3.img"));
    assert_eq!(file_of_node(WRITABLE_NODE).as_deref(), Some("disk.img"));
    for strange in ["", "#block123"] {
        assert_eq!(file_of_node(strange), None, "{strange}");
    }
}

#[tokio::test]
async fn a_console_is_what_the_engine_kept_and_nothing_where_it_keeps_none() {
    let engine = engine(&[
        READY,
        "{\"return\": \"Kernel panic\\u0007\", \"id\": @}\n",
        "{\"error\": {\"class\": \"GenericError\", \"desc\": \"not a ring buffer\"}, \"id\": @}\n",
    ]);
    let mut monitor = Monitor::open(&engine.socket, LIMIT).await.unwrap();
    assert_eq!(monitor.console().await.unwrap(), "Kernel panic\u{7}");
    assert_eq!(monitor.console().await.unwrap(), "");
    engine.task.abort();
}
