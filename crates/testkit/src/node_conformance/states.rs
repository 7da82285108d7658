//! Claims about sandboxes and what their state can become.

use std::time::Duration;

use dayfly_node_api::{LifecycleChange, NodeCalls, SetNetwork};
use dayfly_types::egress::EgressPolicy;
use dayfly_types::{ErrorCode, IdleAction, ProjectId, SandboxState};
use futures::StreamExt;

use super::{Claim, Report, Subject, ensure, refused};

const END_TOLD_WITHIN: Duration = Duration::from_secs(20);

pub(super) async fn run(subject: &Subject, report: &mut Report) {
    let claim = "a create that is repeated finds the same sandbox";
    report.claim(claim, repeated_create(subject)).await;
    let claim = "a sandbox of another project is not found by its id";
    report.claim(claim, foreign_id(subject)).await;
    let claim = "a sandbox that is not there is not found, and can be deleted";
    report.claim(claim, absent(subject)).await;
    let claim = "pause and resume can be repeated, and a paused sandbox takes no command";
    report.claim(claim, pause(subject)).await;
    let claim = "a sleeping sandbox is woken by a command and cannot be paused";
    report.claim(claim, sleep(subject)).await;
    let claim = "every change of the state is a later generation";
    report.claim(claim, generations(subject)).await;
    let claim = "rules of the lifetime change one by one";
    report.claim(claim, lifetime(subject)).await;
    let claim = "a policy of an older epoch is refused and changes nothing";
    report.claim(claim, epochs(subject)).await;
    let claim = "a watch begins with everything and tells of the end";
    report.claim(claim, watch(subject)).await;
    let claim = "what a project uses is not told to another";
    report.claim(claim, loads(subject)).await;
}

async fn repeated_create(subject: &Subject) -> Claim {
    let node = &subject.node;
    let wanted = subject.wanted()?;
    let first = node.ensure_sandbox(wanted.clone()).await?;
    let again = node.ensure_sandbox(wanted.clone()).await?;
    ensure!(first.state == SandboxState::Running, "{first:?}");
    ensure!(first.generation == again.generation, "{again:?}");
    let listed = node.sandboxes().await?;
    let count = listed.iter().filter(|one| one.id == wanted.id).count();
    ensure!(count == 1, "it is listed {count} times");
    subject.delete([&wanted.id]).await
}

async fn foreign_id(subject: &Subject) -> Claim {
    let mut wanted = subject.wanted()?;
    subject.node.ensure_sandbox(wanted.clone()).await?;
    wanted.project = ProjectId::parse("another")?;
    let shown = subject.node.ensure_sandbox(wanted.clone()).await;
    refused(shown, ErrorCode::NotFound)?;
    subject.delete([&wanted.id]).await
}

async fn absent(subject: &Subject) -> Claim {
    let node = &subject.node;
    let id = subject.wanted()?.id;
    refused(node.sandbox(&id).await, ErrorCode::NotFound)?;
    refused(node.pause(&id).await, ErrorCode::NotFound)?;
    refused(node.resume(&id).await, ErrorCode::NotFound)?;
    refused(node.hibernate(&id).await, ErrorCode::NotFound)?;
    refused(node.wake(&id).await, ErrorCode::NotFound)?;
    refused(node.lifecycle(&id).await, ErrorCode::NotFound)?;
    refused(node.network(&id).await, ErrorCode::NotFound)?;
    refused(node.list_execs(&id).await, ErrorCode::NotFound)?;
    let snapshot = node.snapshot(&id, subject.snapshot()?).await;
    refused(snapshot, ErrorCode::NotFound)?;
    let started = node.exec(&id, subject.exec()?).await;
    refused(started.map(drop), ErrorCode::NotFound)?;
    let made = subject.made().await?;
    subject.delete([&id, &made.id, &made.id]).await?;
    refused(node.sandbox(&made.id).await, ErrorCode::NotFound)
}

async fn pause(subject: &Subject) -> Claim {
    let node = &subject.node;
    let id = subject.made().await?.id;
    for _ in 0..2 {
        let paused = node.pause(&id).await?;
        ensure!(paused.state == SandboxState::Paused, "{paused:?}");
    }
    let started = node.exec(&id, subject.exec()?).await;
    refused(started.map(drop), ErrorCode::WrongState)?;
    refused(node.list_execs(&id).await, ErrorCode::WrongState)?;
    for _ in 0..2 {
        let running = node.resume(&id).await?;
        ensure!(running.state == SandboxState::Running, "{running:?}");
    }
    subject.delete([&id]).await
}

async fn sleep(subject: &Subject) -> Claim {
    let node = &subject.node;
    let id = subject.made().await?.id;
    for _ in 0..2 {
        let asleep = node.hibernate(&id).await?;
        ensure!(asleep.state == SandboxState::Hibernated, "{asleep:?}");
    }
    refused(node.pause(&id).await, ErrorCode::WrongState)?;
    refused(node.resume(&id).await, ErrorCode::WrongState)?;
    let mut events = node.exec(&id, subject.exec()?).await?;
    while let Some(event) = events.next().await {
        event?;
    }
    let awake = node.sandbox(&id).await?;
    ensure!(awake.state == SandboxState::Running, "{awake:?}");
    let awake = node.wake(&id).await?;
    ensure!(awake.state == SandboxState::Running, "{awake:?}");
    // Asleep from a pause, and gone from its sleep.
    node.pause(&id).await?;
    let asleep = node.hibernate(&id).await?;
    ensure!(asleep.state == SandboxState::Hibernated, "{asleep:?}");
    subject.delete([&id]).await
}

async fn generations(subject: &Subject) -> Claim {
    let node = &subject.node;
    let made = subject.made().await?;
    let mut seen = vec![made.generation.0];
    for report in [
        node.pause(&made.id).await?,
        node.resume(&made.id).await?,
        node.hibernate(&made.id).await?,
        node.wake(&made.id).await?,
    ] {
        seen.push(report.generation.0);
    }
    ensure!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
    subject.delete([&made.id]).await
}

async fn lifetime(subject: &Subject) -> Claim {
    let node = &subject.node;
    let id = subject.made().await?.id;
    let change = LifecycleChange {
        ttl_seconds: Some(Some(600)),
        on_timeout: Some(IdleAction::Hibernate),
        ..LifecycleChange::default()
    };
    let now = node.set_lifecycle(&id, change).await?;
    let left = now.expires_in_seconds;
    ensure!(
        left.is_some_and(|left| (590..=600).contains(&left)),
        "{now:?}"
    );
    let change = LifecycleChange {
        persistent: Some(true),
        ..LifecycleChange::default()
    };
    let now = node.set_lifecycle(&id, change).await?;
    ensure!(now.lifecycle.persistent, "{now:?}");
    ensure!(now.lifecycle.ttl_seconds == Some(600), "{now:?}");
    ensure!(now.lifecycle.on_timeout == IdleAction::Hibernate, "{now:?}");
    let change = LifecycleChange {
        ttl_seconds: Some(None),
        ..LifecycleChange::default()
    };
    node.set_lifecycle(&id, change).await?;
    let now = node.lifecycle(&id).await?;
    ensure!(now.expires_in_seconds.is_none(), "{now:?}");
    subject.delete([&id]).await
}

async fn epochs(subject: &Subject) -> Claim {
    let node = &subject.node;
    let id = subject.made().await?.id;
    let wanted = |epoch, policy| SetNetwork { epoch, policy };
    let set = node
        .set_network(&id, wanted(7, EgressPolicy::deny()))
        .await?;
    ensure!(
        set.epoch == 7 && set.policy == EgressPolicy::deny(),
        "{set:?}"
    );
    let again = node
        .set_network(&id, wanted(7, EgressPolicy::deny()))
        .await?;
    ensure!(again.epoch == 7, "{again:?}");
    let older = node.set_network(&id, wanted(6, EgressPolicy::deny())).await;
    refused(older, ErrorCode::WrongState)?;
    let other = node
        .set_network(&id, wanted(7, EgressPolicy::default()))
        .await;
    if EgressPolicy::default() != EgressPolicy::deny() {
        refused(other, ErrorCode::WrongState)?;
    }
    let now = node.network(&id).await?;
    ensure!(
        now.epoch == 7 && now.policy == EgressPolicy::deny(),
        "{now:?}"
    );
    subject.delete([&id]).await
}

async fn watch(subject: &Subject) -> Claim {
    let node = &subject.node;
    let id = subject.made().await?.id;
    let mut watch = node.watch().await?;
    let first = watch.next().await.ok_or("the watch ended")??;
    ensure!(first.id == id, "{first:?}");
    subject.delete([&id]).await?;
    let told = async {
        while let Some(report) = watch.next().await {
            let report = report?;
            if report.id == id && report.state == SandboxState::Deleted {
                return Ok(());
            }
        }
        Err("the watch ended without a word of the end".into())
    };
    tokio::time::timeout(END_TOLD_WITHIN, told).await?
}

async fn loads(subject: &Subject) -> Claim {
    let node = &subject.node;
    let id = subject.made().await?.id;
    let other = node.loads(&ProjectId::parse("another")?).await?;
    ensure!(other.is_empty(), "{other:?}");
    let all = node.all_loads().await?;
    let of_another = all.iter().find(|load| load.id != id);
    ensure!(of_another.is_none(), "{of_another:?} is not there");
    subject.delete([&id]).await
}
