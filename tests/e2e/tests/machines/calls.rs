//! Execs and files, as a client sees them.

use std::time::Duration;

use anyhow::{Result, ensure};
use dayfly_api::{Command, ExecRequest};
use dayfly_client::{ClientError, FileBody};
use dayfly_e2e::{Daemon, DaemonOptions, create, exec, setting_or_skip, shell, until};

const SETTLED: Duration = Duration::from_secs(30);

#[tokio::test]
async fn execs_and_files_do_what_they_say() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;

    // Who, where, and what is there.
    let who = exec(
        &client,
        &id,
        "id -un; pwd; sudo -n id -u; command -v python3 git curl",
    )
    .await?;
    let lines: Vec<&str> = who.stdout.lines().collect();
    ensure!(
        lines.starts_with(&["agent", "/workspace", "0"]) && lines.len() == 6,
        "{who:?}"
    );

    // Exit truth.
    for (text, code) in [
        ("true", 0),
        ("exit 7", 7),
        ("no-such-command", 127),
        ("kill -9 $$", 137),
    ] {
        let result = exec(&client, &id, text).await?;
        ensure!(result.exit_code == code, "{text}: {result:?}");
    }
    let slow = ExecRequest {
        timeout_seconds: Some(0.5),
        ..shell("sleep 30")
    };
    let Err(ClientError::Api(error)) = client.exec(&id, &slow).await else {
        anyhow::bail!("a command past its limit gave a result");
    };
    ensure!(error.status == 504 && error.code == "timeout", "{error:?}");

    // Arguments are kept apart, input is given, environment and directory are set.
    let request = ExecRequest {
        cmd: Command::Argv(vec![
            "sh".into(),
            "-c".into(),
            "echo \"$A\"; pwd; cat".into(),
        ]),
        cwd: Some("/tmp".to_owned()),
        env: Some([("A".to_owned(), "b c".to_owned())].into()),
        stdin: Some("typed".to_owned()),
        ..shell("")
    };
    let result = client.exec(&id, &request).await?;
    ensure!(result.stdout == "b c\n/tmp\ntyped", "{result:?}");

    files_round_trip(&client, &id).await?;
    daemon.finish().await
}

async fn files_round_trip(client: &dayfly_client::Client, id: &str) -> Result<()> {
    // Files, binary and whole, with their directories made.
    let bytes: Vec<u8> = (0..3_000_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let path = "/workspace/deep/er/data.bin";
    let written = client
        .write_file(id, path, FileBody::from_bytes(bytes.clone()))
        .await?;
    ensure!(written.bytes == bytes.len() as u64);
    let mut content = client.read_file(id, path).await?;
    let mut back = Vec::new();
    while let Some(part) = content.next().await? {
        back.extend_from_slice(&part);
    }
    ensure!(back == bytes, "{} bytes came back changed", back.len());
    let listing = client.list_directory(id, "/workspace/deep").await?;
    ensure!(
        listing.entries.len() == 1 && listing.entries[0].is_dir,
        "{listing:?}"
    );
    ensure!(client.stat(id, path).await?.size == bytes.len() as u64);
    let Err(ClientError::Api(missing)) = client.stat(id, "/workspace/none").await else {
        anyhow::bail!("a missing file was found");
    };
    ensure!(missing.status == 404);
    Ok(())
}

#[tokio::test]
async fn the_command_line_runs_and_passes_the_status_on() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, _) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let output = daemon
        .dayfly(&["run", "--", "python3", "-c", "print(6*7)"])
        .await?;
    ensure!(
        output.status.code() == Some(0) && output.stdout == b"42\n",
        "{output:?}"
    );
    let output = daemon.dayfly(&["run", "--", "sh", "-c", "exit 7"]).await?;
    ensure!(output.status.code() == Some(7), "{output:?}");
    let wanted = "the network denied denied.example; allow it with `--allow denied.example`";
    tells_what_was_denied(&daemon, &["run"], wanted).await?;
    let output = daemon.dayfly(&["ls", "--json"]).await?;
    ensure!(output.status.success() && !String::from_utf8_lossy(&output.stdout).contains("sb-"));
    let path = daemon.path().display().to_string();
    let id = create(&daemon.client()?, "base").await?.id;
    let wanted = format!(
        "the network denied denied.example; see `dayfly net log {id}`, \
         allow with `dayfly net allow {id} denied.example`"
    );
    tells_what_was_denied(&daemon, &["exec", &id], &wanted).await?;
    let output = daemon
        .dayflyd(&["stop", "--all", "--data-dir", &path])
        .await?;
    ensure!(output.status.success(), "{output:?}");
    // The node has ended it; that it did is news for the server.
    let client = daemon.client()?;
    until("no sandbox is left", SETTLED, || async {
        let rows = client.list_sandboxes().await.ok()?;
        rows.is_empty().then_some(())
    })
    .await?;
    daemon.finish().await
}

/// Looks a name up that is not allowed, for a person and for a program.
async fn tells_what_was_denied(daemon: &Daemon, command: &[&str], wanted: &str) -> Result<()> {
    let lookup = ["--", "getent", "hosts", "denied.example"];
    let output = daemon.dayfly(&[command, &lookup].concat()).await?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(told.contains(wanted), "{command:?}: {output:?}");
    let output = daemon
        .dayfly(&[command, &["--json"], &lookup].concat())
        .await?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    ensure!(report["hint"] == wanted, "{command:?}: {output:?}");
    Ok(())
}

/// Every route but health refuses a missing and a wrong key, as the document lists them.
#[tokio::test]
async fn every_route_but_health_wants_a_key() -> Result<()> {
    let setting = setting_or_skip!();
    // Until its node has answered once, a daemon is not healthy.
    let (daemon, _) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let document: serde_json::Value =
        serde_json::from_str(include_str!("../../../../openapi/v1.json"))?;
    let paths = document["paths"]
        .as_object()
        .expect("the document has paths");
    let mut asked = 0;
    for (path, methods) in paths {
        let url = format!(
            "{}{}",
            daemon.url(),
            path.replace("{id}", "sb-local-0").replace("{name}", "x")
        );
        for method in methods.as_object().expect("methods").keys() {
            if !["get", "put", "post", "delete", "patch"].contains(&method.as_str()) {
                continue;
            }
            for key in [None, Some("Authorization: Bearer dfk_wrong")] {
                let status = curl_status(method, &url, key).await?;
                let wanted = match path.as_str() {
                    "/health" | "/ready" => "200",
                    // Nobody can, on this host.
                    "/v1/sign-in" => "404",
                    _ => "401",
                };
                ensure!(status == wanted, "{method} {path} with {key:?}: {status}");
                asked += 1;
            }
        }
    }
    dayfly_e2e::figure!("{asked} calls without a good key");
    ensure!(asked > 20);
    daemon.finish().await
}

async fn curl_status(method: &str, url: &str, header: Option<&str>) -> Result<String> {
    let mut command = tokio::process::Command::new("curl");
    command.args([
        "-s",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "-X",
        &method.to_uppercase(),
        url,
    ]);
    if let Some(header) = header {
        command.args(["-H", header]);
    }
    Ok(String::from_utf8(command.output().await?.stdout)?)
}
