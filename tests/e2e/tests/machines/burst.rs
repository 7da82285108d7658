//! Many creates at once are brought up one after the other, and nobody's burst keeps others out.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateProject, CreateToken};
use dayfly_client::{ApiKey, Client, ClientConfig};
use dayfly_e2e::{Daemon, DaemonOptions, create, exec, setting_or_skip, until};

/// What one project asks for at once.
const MANY: usize = 8;
/// Of these, so many come up behind a create that was asked for after all of them.
const OVERTAKEN: usize = 3;

async fn project(daemon: &Daemon, operator: &Client, name: &str) -> Result<Client> {
    let project = CreateProject {
        id: name.to_owned(),
        limits: None,
    };
    operator.create_project(&project).await?;
    let wish = CreateToken::default();
    let token = operator.create_token(Some(name), &wish).await?.token;
    Ok(Client::new(ClientConfig {
        url: daemon.url(),
        key: Some(ApiKey::parse(&token)?),
    })?)
}

/// When a create has its first response of a command, and how long it waited for its turn.
async fn first_exec(client: Client) -> Result<(Instant, u64)> {
    let sandbox = create(&client, "base").await?;
    ensure!(exec(&client, &sandbox.id, "true").await?.exit_code == 0);
    let waited = sandbox.boot_stages_us.get("line");
    Ok((Instant::now(), *waited.context("no stage of waiting")?))
}

#[tokio::test]
async fn a_burst_finishes_one_after_the_other_and_lets_another_project_through() -> Result<()> {
    let setting = setting_or_skip!();
    let options = DaemonOptions {
        arguments: vec!["--allow-shared-emulation".to_owned()],
        ..DaemonOptions::default()
    };
    let (daemon, _) = Daemon::ready(&setting, options).await?;
    let operator = daemon.client()?;
    let many = project(&daemon, &operator, "many").await?;
    let other = project(&daemon, &operator, "other").await?;
    let began = Instant::now();
    let burst: Vec<_> = (0..MANY)
        .map(|_| tokio::spawn(first_exec(many.clone())))
        .collect();
    until("all are asked for", Duration::from_secs(20), || {
        let many = many.clone();
        async move {
            let known = many.list_sandboxes().await.ok()?;
            (known.len() == MANY).then_some(())
        }
    })
    .await?;
    let (other_done, _) = first_exec(other).await?;
    let mut done = Vec::new();
    for one in burst {
        done.push(one.await??);
    }
    let behind = done.iter().filter(|(at, _)| *at > other_done).count();
    let longest = done.iter().map(|(_, waited)| *waited).max();
    let last = done.iter().map(|(at, _)| *at - began).max();
    dayfly_e2e::figure!(
        "{MANY} creates at once: the last after {last:?}, the longest wait {longest:?} us; another \
         project's create came up before {behind} of them"
    );
    // With more processors all of them are brought up at once, and nobody waits.
    if std::thread::available_parallelism()?.get() <= 2 {
        ensure!(
            behind >= OVERTAKEN,
            "only {behind} of {MANY} came up behind it"
        );
        ensure!(longest > Some(0), "nobody waited");
    }
    daemon.finish().await
}
