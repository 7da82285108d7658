//! A create whose answer is lost, and which is then asked for again, makes one sandbox.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use dayfly_e2e::{Daemon, DaemonOptions, setting_or_skip};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// Sends a create and hangs up after a while, whatever the daemon is doing then.
async fn create_and_hang_up(daemon: &Daemon, key: &str, body: &str, after: Duration) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port())).await?;
    let request = format!(
        "POST /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         idempotency-key: {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        daemon.key()?,
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    // How far the create has come by then is what is tried out, not what is waited for.
    tokio::time::sleep(after).await;
    Ok(())
}

/// What another client says when it asks with the same key: the id of the sandbox.
async fn create_again(daemon: &Daemon, key: &str, body: &str) -> Result<String> {
    let url = format!("{}/v1/sandboxes", daemon.url());
    let mut curl = tokio::process::Command::new("curl");
    curl.args(["-sS", "--fail-with-body", "--max-time", "60", "-X", "POST"]);
    curl.args(["-H", &format!("authorization: Bearer {}", daemon.key()?)]);
    curl.args(["-H", &format!("idempotency-key: {key}")]);
    curl.args(["-H", "content-type: application/json", "-d", body, &url]);
    let done = curl.output().await?;
    let said = String::from_utf8_lossy(&done.stdout);
    ensure!(done.status.success(), "{key}: {said}");
    let answer: serde_json::Value = serde_json::from_str(&said)?;
    Ok(answer["id"].as_str().context("no id")?.to_owned())
}

async fn lost_answers(count: u32) -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    for index in 0..count {
        let key = format!("lost-{index}");
        let body = format!(r#"{{"template":"base","metadata":{{"key":"{key}"}}}}"#);
        // From before the node was asked until after the machine runs.
        let after = Duration::from_millis(u64::from(index) * 1500 / u64::from(count));
        create_and_hang_up(&daemon, &key, &body, after).await?;
        let id = create_again(&daemon, &key, &body).await?;
        let made: BTreeSet<String> = client
            .list_sandboxes()
            .await?
            .into_iter()
            .map(|sandbox| sandbox.id.to_string())
            .collect();
        ensure!(made == BTreeSet::from([id.clone()]), "{id} and {made:?}");
        client.delete_sandbox(&id).await?;
    }
    dayfly_e2e::figure!("{count} creates with a lost answer, {count} sandboxes");
    ensure!(daemon.leftovers().await?.is_empty(), "something is left");
    daemon.finish().await
}

#[tokio::test]
async fn three_creates_with_a_lost_answer_make_three_sandboxes() -> Result<()> {
    lost_answers(3).await
}

#[tokio::test]
#[ignore = "soak: ten machines"]
async fn ten_creates_with_a_lost_answer_make_ten_sandboxes() -> Result<()> {
    lost_answers(10).await
}
