//! Builds that the server runs for callers without the command: a form as curl sends it, the events,
//! and what is made; and two projects that ask for the same.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateProject, CreateSandbox, CreateToken};
use dayfly_client::{ApiKey, Client, ClientConfig};
use dayfly_e2e::{Daemon, DaemonOptions, figure, output, patient, setting_or_skip};
use serde_json::Value;

/// Two builders, four snapshots, a boot and a capture.
const BUILT_SECONDS: u64 = 240;
const DOCKERFILE: &str = "FROM base\nWORKDIR /srv/app\nUSER root\nARG SECRET=none\nCOPY src/ ./\n\
    RUN ./greet > greeted; env > environment; echo end\nUSER agent\n\
    HEALTHCHECK --interval=1s --start-period=60s CMD curl -sf localhost:8000/greeted\n\
    CMD [\"python3\", \"-m\", \"http.server\"]\n";

fn write_context(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory.join("src"))?;
    std::fs::write(directory.join("Dockerfile"), DOCKERFILE)?;
    std::fs::write(directory.join("src/greet"), "#!/bin/sh\necho hello\n")?;
    std::fs::write(directory.join("src/left.env"), "left out\n")?;
    Ok(std::fs::write(directory.join("ignore"), "**/*.env\n")?)
}

/// What curl gets, which must be a success.
async fn curl(words: &[&str], key: &str) -> Result<String> {
    let header = format!("authorization: Bearer {key}");
    let seconds = patient(Duration::from_secs(BUILT_SECONDS))
        .as_secs()
        .to_string();
    let mut command = tokio::process::Command::new("curl");
    command.args(["-sS", "-N", "--fail-with-body", "--max-time", &seconds]);
    let done = command.args(["-H", &header]).args(words).output().await?;
    let said = String::from_utf8(done.stdout)?;
    let complained = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{words:?}: {said} {complained}");
    Ok(said)
}

/// Has the server build, and gives the build and its events when it has ended.
async fn build(
    daemon: &Daemon,
    key: &str,
    context: &Path,
    more: &[&str],
) -> Result<(Value, Vec<Value>)> {
    let url = format!("{}/v1/templates/build", daemon.url());
    let part = |name: &str, file: &str| format!("{name}=@{}", context.join(file).display());
    let text = format!("dockerfile=<{}", context.join("Dockerfile").display());
    let (greet, left) = (
        part("src/greet", "src/greet"),
        part("src/left.env", "src/left.env"),
    );
    let ignore = part(".dockerignore", "ignore");
    let mut words = vec!["-F", "name=app", "-F", &text, "-F", &greet, "-F", &left];
    words.extend(["-F", &ignore, "-F", "context.modes={\"src/greet\":\"755\"}"]);
    words.extend(more);
    words.push(&url);
    let begun: Value = serde_json::from_str(&curl(&words, key).await?)?;
    let id = begun["id"].as_str().context("no id")?;
    let url = format!("{}/v1/templates/builds/{id}", daemon.url());
    let told = curl(&[&format!("{url}/events")], key).await?;
    let lines = told.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Result<Vec<Value>, _> = lines.map(serde_json::from_str).collect();
    let ended: Value = serde_json::from_str(&curl(&[&url], key).await?)?;
    Ok((ended, events?))
}

fn count(events: &[Value], name: &str) -> usize {
    events.iter().filter(|event| event["event"] == name).count()
}

async fn create(client: &Client, template: &str) -> Result<String> {
    let request = CreateSandbox {
        template: Some(template.to_owned()),
        ..CreateSandbox::default()
    };
    Ok(client.create_when_ready(&request, |_| {}).await?.id)
}

/// A client of another project, and its key.
async fn other_project(daemon: &Daemon, operator: &Client) -> Result<(Client, String)> {
    let project = CreateProject {
        id: "other".to_owned(),
        limits: None,
    };
    operator.create_project(&project).await?;
    let made = operator
        .create_token(Some("other"), &CreateToken::default())
        .await?;
    let client = Client::new(ClientConfig {
        url: daemon.url(),
        key: Some(ApiKey::parse(&made.token)?),
    })?;
    Ok((client, made.token))
}

#[tokio::test]
async fn a_form_with_files_is_built_by_the_server_for_its_project_alone() -> Result<()> {
    let setting = setting_or_skip!();
    let options = DaemonOptions {
        arguments: vec!["--allow-shared-emulation".to_owned()],
        ..DaemonOptions::default()
    };
    let (daemon, client) = Daemon::ready(&setting, options).await?;
    let context = tempfile::tempdir()?;
    write_context(context.path())?;
    let key = daemon.key()?;
    let secret = ["-F", "build_args={\"SECRET\":\"of-the-first\"}"];
    let began = Instant::now();
    let (first, events) = build(&daemon, &key, context.path(), &secret).await?;
    figure!(
        "a build by the server, with its bake: {:?}",
        began.elapsed()
    );
    ensure!(first["status"] == "done", "{first}\n{events:#?}");
    ensure!(first["cached"] == 0, "{first}");
    ensure!(
        count(&events, "output") >= 1 && count(&events, "built") == 1,
        "{events:#?}"
    );
    let sandbox = create(
        &client,
        first["image_ref"].as_str().context("no reference")?,
    )
    .await?;
    let said = output(
        &client,
        &sandbox,
        "id -un; pwd; cat greeted; ls left.env 2>&1 | wc -l",
    )
    .await?;
    ensure!(said == "agent\n/srv/app\nhello\n1", "{said}");
    let environment = output(&client, &sandbox, "cat environment").await?;
    ensure!(environment.contains("SECRET=of-the-first"), "{environment}");
    // The build is a client with this key, and the key is not where its steps run.
    ensure!(
        !environment.contains(&key),
        "the key of the caller is in the builder"
    );
    let served = output(&client, &sandbox, "curl -s localhost:8000/greeted").await?;
    ensure!(served == "hello", "{served}");
    client.delete_sandbox(&sandbox).await?;
    let began = Instant::now();
    let (again, events) = build(&daemon, &key, context.path(), &secret).await?;
    figure!("the same again: {:?}", began.elapsed());
    ensure!(again["version"] == first["version"], "{again}");
    ensure!(
        again["cached"] == again["steps"] && count(&events, "started") == 0,
        "{again}"
    );
    no_step_of_another(&daemon, &client, context.path(), &first).await?;
    daemon.finish().await
}

/// The same asked for by another project: every step is done there, and nothing of the first is seen.
async fn no_step_of_another(
    daemon: &Daemon,
    operator: &Client,
    context: &Path,
    first: &Value,
) -> Result<()> {
    let (theirs, key) = other_project(daemon, operator).await?;
    let secret = ["-F", "build_args={\"SECRET\":\"of-the-first\"}"];
    let (second, events) = build(daemon, &key, context, &secret).await?;
    ensure!(second["status"] == "done", "{second}\n{events:#?}");
    ensure!(
        second["cached"] == 0 && count(&events, "cached") == 0,
        "{second}\n{events:#?}"
    );
    ensure!(second["version"] != first["version"], "{second}");
    let (third, _) = build(daemon, &key, context, &[]).await?;
    let sandbox = create(
        &theirs,
        third["image_ref"].as_str().context("no reference")?,
    )
    .await?;
    let environment = output(&theirs, &sandbox, "cat environment").await?;
    ensure!(environment.contains("SECRET=none"), "{environment}");
    theirs.delete_sandbox(&sandbox).await?;
    let id = first["id"].as_str().context("no id")?;
    let refused = theirs.build(id).await;
    ensure!(refused.is_err(), "{refused:?}");
    ensure!(
        operator.build(id).await?.id == id,
        "it is there for its own project"
    );
    Ok(())
}
