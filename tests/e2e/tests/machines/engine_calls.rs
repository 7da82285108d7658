//! The lists of system calls, compared with what is called when every path of an engine is taken.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSandbox, CreateSnapshot, CreateVolume, ForkSandbox, VolumeMount};
use dayfly_client::Client;
use dayfly_e2e::recorder::{Calls, Recorder};
use dayfly_e2e::{Daemon, DaemonOptions, create, figure, output, output_of_root, setting_or_skip};
use dayfly_host::jail::JailCalls;

/// Boots are those of a bake, which a test of templates has; everything else is here.
async fn take_every_path(client: &Client) -> Result<()> {
    let id = create(client, "base").await?.id;
    output(client, &id, "echo one >/workspace/f; sync").await?;
    let snapshot = client
        .create_snapshot(&id, &CreateSnapshot::default())
        .await?;
    output(client, &id, "echo two >/workspace/f").await?;
    client.rollback_sandbox(&id, &snapshot.id).await?;
    ensure!(output(client, &id, "cat /workspace/f").await? == "one");
    let forked = client.fork_sandbox(&id, &ForkSandbox::default()).await?;
    for child in forked.children {
        ensure!(output(client, &child.id, "cat /workspace/f").await? == "one");
        client.delete_sandbox(&child.id).await?;
    }
    client.pause_sandbox(&id).await?;
    client.resume_sandbox(&id).await?;
    client.hibernate_sandbox(&id).await?;
    client.wake_sandbox(&id).await?;
    let discard = "dd if=/dev/urandom of=/workspace/z bs=1M count=8 && rm /workspace/z && \
        sync && (fstrim /workspace || fstrim /) 2>&1; true";
    output_of_root(client, &id, discard).await?;
    client.delete_sandbox(&id).await?;
    with_volume(client).await
}

async fn with_volume(client: &Client) -> Result<()> {
    let volume = CreateVolume {
        name: "data".to_owned(),
        size_mb: Some(64),
        size_gb: None,
    };
    client.create_volume(&volume).await?;
    let request = CreateSandbox {
        volumes: Some(vec![VolumeMount {
            name: "data".to_owned(),
            path: None,
            read_only: None,
        }]),
        ..CreateSandbox::default()
    };
    let id = client.create_sandbox(&request).await?.id;
    output(client, &id, "echo kept >/volumes/data/f; sync").await?;
    client.delete_sandbox(&id).await?;
    Ok(())
}

fn names(calls: &Calls) -> BTreeSet<&str> {
    calls
        .iter()
        .filter_map(|call| call.split(' ').next())
        .collect()
}

/// Says what was seen, and fails on what is on no list. What is listed and was not seen is said as
/// well: that is where a list can become shorter.
fn compare(program: &str, seen: &Calls, list: JailCalls) -> Result<()> {
    let list = list.list();
    let allowed: BTreeSet<&str> = list.allowed.iter().map(|it| it.call.name).collect();
    let absent: BTreeSet<&str> = list.absent.iter().map(|call| call.name).collect();
    let called = names(seen);
    let outside: Vec<_> = called
        .iter()
        .filter(|&&name| !allowed.contains(name) && !absent.contains(name))
        .collect();
    let unseen: Vec<_> = allowed.difference(&called).collect();
    figure!(
        "{program}: {} calls allowed, {} seen; commands and calls {seen:?}",
        allowed.len(),
        called.len()
    );
    figure!("{program}: allowed and not seen {unseen:?}");
    ensure!(
        outside.is_empty(),
        "{program} calls what is on no list: {outside:?}"
    );
    Ok(())
}

#[tokio::test]
#[ignore = "soak: every call is traced"]
async fn the_lists_hold_what_is_called() -> Result<()> {
    let setting = setting_or_skip!();
    let Some(recorder) = Recorder::new(&setting)? else {
        figure!("skipped: there is no tracer");
        return Ok(());
    };
    let daemon = Daemon::start(&recorder.setting(&setting), DaemonOptions::default()).await?;
    daemon
        .wait_for_template("base", Duration::from_secs(120))
        .await?;
    let client = daemon.client()?;
    take_every_path(&client).await?;
    let node = client.node().await?;
    let engine = match node.isolation.as_str() {
        "hardware" => JailCalls::KvmEngine,
        _ => JailCalls::EmulatedEngine,
    };
    daemon.finish().await?;
    let calls = recorder.calls()?;
    let of = |program: &str| calls.get(program).with_context(|| format!("no {program}"));
    compare("engine", of("qemu-system-x86_64")?, engine)?;
    compare("egress", of("dayfly-egress")?, JailCalls::Egress)
}
