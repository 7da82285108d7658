//! How commands end, told apart in the API and in the exit status of `dayfly exec`.

use std::time::Duration;

use anyhow::{Result, ensure};
use dayfly_api::ExecRequest;
use dayfly_client::{Client, ClientError};
use dayfly_e2e::engine::engine_pid;
use dayfly_e2e::{Daemon, DaemonOptions, create, exec, setting_or_skip, shell};

/// Takes memory in small steps, so that the limit and not the size of one step ends it.
const GREEDY: &str = "python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'";
const SPIN: &str = "while :; do :; done";

async fn status(daemon: &Daemon, arguments: &[&str]) -> Result<i32> {
    let output = daemon.dayfly(arguments).await?;
    Ok(output.status.code().unwrap_or(-1))
}

async fn limited(client: &Client, id: &str, request: ExecRequest) -> Result<(String, Vec<String>)> {
    let result = client.exec(id, &request).await?;
    ensure!(result.exit_code == 137, "{result:?}");
    Ok((result.reason, result.limits_hit))
}

#[tokio::test]
async fn every_ending_is_told_apart() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    let endings = [
        ("true", 0, "exited"),
        ("exit 1", 1, "exited"),
        ("no-such-command", 127, "exited"),
        ("kill -TERM $$", 143, "signaled"),
    ];
    for (text, code, reason) in endings {
        let result = exec(&client, &id, text).await?;
        ensure!(
            result.exit_code == code && result.reason == reason,
            "{text}: {result:?}"
        );
        let own = status(&daemon, &["exec", &id, "--", "sh", "-c", text]).await?;
        ensure!(own == code, "{text}: dayfly exec ended with {own}");
    }

    limits_are_told_apart(&daemon, &client, &id).await?;
    a_lost_guest_is_no_ending(&daemon, &client, &id).await?;
    client.delete_sandbox(&id).await?;
    daemon.finish().await
}

async fn limits_are_told_apart(daemon: &Daemon, client: &Client, id: &str) -> Result<()> {
    let late = ExecRequest {
        timeout_seconds: Some(0.5),
        ..shell("sleep 30")
    };
    let Err(ClientError::Api(error)) = client.exec(id, &late).await else {
        anyhow::bail!("a command past its limit gave a result");
    };
    ensure!(error.code == "timeout", "{error:?}");
    let own = status(
        daemon,
        &["exec", id, "--timeout", "0.5", "--", "sleep", "30"],
    )
    .await?;
    ensure!(own == 124, "{own}");

    let greedy = ExecRequest {
        memory_mb: Some(32),
        ..shell(GREEDY)
    };
    let (reason, limits) = limited(client, id, greedy).await?;
    ensure!(
        reason == "limit_exceeded" && limits == ["memory"],
        "{reason} {limits:?}"
    );
    let arguments = ["exec", id, "--memory-mb", "32", "--", "sh", "-c", GREEDY];
    let own = status(daemon, &arguments).await?;
    ensure!(own == 122, "{own}");

    let busy = ExecRequest {
        cpu_seconds: Some(0.5),
        ..shell(SPIN)
    };
    let (reason, limits) = limited(client, id, busy).await?;
    ensure!(
        reason == "limit_exceeded" && limits == ["cpu"],
        "{reason} {limits:?}"
    );

    let many = ExecRequest {
        max_processes: Some(5),
        ..shell("for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait; true")
    };
    let result = client.exec(id, &many).await?;
    ensure!(result.limits_hit == ["processes"], "{result:?}");
    // The sandbox as a whole: told from a limit of the command's own.
    let result = exec(client, id, GREEDY).await?;
    ensure!(result.reason == "out_of_memory", "{result:?}");
    ensure!(exec(client, id, "true").await?.exit_code == 0, "it goes on");

    Ok(())
}

/// The guest goes away under a command.
async fn a_lost_guest_is_no_ending(daemon: &Daemon, client: &Client, id: &str) -> Result<()> {
    let engine = engine_pid(daemon, id)?;
    let hanging = tokio::spawn({
        let (client, id) = (client.clone(), id.to_owned());
        async move { client.exec(&id, &shell("echo begun; sleep 60")).await }
    });
    let own = tokio::spawn({
        let arguments = ["exec", id, "--", "sleep", "60"].map(str::to_owned);
        let mut command = daemon.command(&arguments)?;
        async move { command.status().await }
    });
    dayfly_e2e::until("both run", Duration::from_secs(30), async || {
        let processes = client.list_processes(id).await.ok()?;
        let running = processes.iter().filter(|p| p.state == "running").count();
        (running == 2).then_some(())
    })
    .await?;
    Daemon::kill(engine)?;
    let Err(ClientError::Api(error)) = hanging.await? else {
        anyhow::bail!("a command without its guest gave a result");
    };
    ensure!(
        error.code == "guest_unavailable" || error.code == "wrong_state",
        "{error:?}"
    );
    let own = own.await??.code();
    ensure!(own == Some(125), "{own:?}");
    Ok(())
}
