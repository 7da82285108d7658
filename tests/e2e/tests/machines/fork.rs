//! Children of a fork continue from one instant of their source, and the source notices nothing.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use dayfly_api::{ForkSandbox, Sandbox};
use dayfly_client::{Client, CommandEvent};
use dayfly_e2e::keeper::{self, Count};
use dayfly_e2e::{Daemon, DaemonOptions, create, figure, output, setting_or_skip, shell, until};

struct Scale {
    children: u64,
    objects_mib: u32,
}

/// Prints numbers until it is told to stop. Every line must arrive once.
const NUMBERS: &str = r#"exec python3 -I -S -c '
import os, time
number = 0
while not os.path.exists("/tmp/stop"):
    number += 1
    print(number, flush=True)
    if number == 1:
        open("/tmp/begun", "w").close()
    time.sleep(0.02)
'"#;

/// What a stream gave from its first to its last line, with its exit code.
async fn read_stream(client: Client, id: String) -> Result<String> {
    let mut stream = client.exec_stream(&id, &shell(NUMBERS)).await?;
    let mut text = String::new();
    while let Some(event) = stream.next().await? {
        match event {
            CommandEvent::Stdout(chunk) => text.push_str(&chunk),
            CommandEvent::Stderr(chunk) => bail!("the stream complained: {chunk}"),
            CommandEvent::Exit(exit) => ensure!(exit.exit_code == 0, "{exit:?}"),
        }
    }
    Ok(text)
}

fn numbers_are_complete(text: &str) -> Result<usize> {
    for (index, line) in text.lines().enumerate() {
        ensure!(
            line.parse() == Ok(index + 1),
            "line {} of the stream is {line:?}",
            index + 1
        );
    }
    Ok(text.lines().count())
}

/// Makes the children while a stream of the source runs from before the fork to behind it.
async fn fork_under_a_stream(client: &Client, id: &str, count: u64) -> Result<Vec<Sandbox>> {
    let stream = tokio::spawn(read_stream(client.clone(), id.to_owned()));
    let begun = "timeout 20 sh -c 'until test -e /tmp/begun; do sleep 0.1; done'";
    output(client, id, begun).await?;
    let request = ForkSandbox {
        count: Some(count),
        ..ForkSandbox::default()
    };
    let start = Instant::now();
    let forked = client.fork_sandbox(id, &request).await?;
    let took = start.elapsed();
    let standing = &forked.capture;
    figure!(
        "fork({count}) answered after {took:?}; paused {:.0} ms, frozen {:.0} ms, {} KiB of memory",
        standing.pause_ms,
        standing.frozen_ms,
        standing.memory_bytes >> 10
    );
    ensure!(forked.failures.is_empty(), "{:?}", forked.failures);
    ensure!(
        forked.children.len() as u64 == count,
        "{:?}",
        forked.children
    );
    output(client, id, "touch /tmp/stop").await?;
    let lines = numbers_are_complete(&stream.await??)?;
    figure!("the stream of the source has {lines} lines, none lost, none twice");
    ensure!(lines > 10, "the stream was not running: {lines} lines");
    Ok(forked.children)
}

/// Splits a child's log where it became the child.
fn split<'a>(log: &'a [Count], source: &str, child: &str) -> Result<(&'a [Count], &'a [Count])> {
    let own = log.iter().position(|count| count.host != source);
    let own = own.with_context(|| format!("{child} never counted for itself"))?;
    let (before, after) = log.split_at(own);
    ensure!(
        after.iter().all(|count| count.host == child),
        "{child} counted as somebody else"
    );
    Ok((before, after))
}

/// Every child has the same log up to the fork, which is the beginning of the source's, and goes
/// on at the next number through the descriptor that was open.
async fn one_instant(client: &Client, source: &str, children: &[Sandbox]) -> Result<()> {
    let of_source = keeper::counts(client, source).await?;
    ensure!(
        of_source.iter().all(|count| count.host == source),
        "the source counted as somebody else"
    );
    let mut instants = Vec::new();
    for child in children {
        let log = until("a child counts", Duration::from_secs(30), || async {
            let log = keeper::counts(client, &child.id).await;
            match log {
                Ok(log) if log.last().is_some_and(|last| last.host == source) => None,
                other => Some(other),
            }
        })
        .await??;
        let (before, after) = split(&log, source, &child.id)?;
        ensure!(
            of_source.get(..before.len()) == Some(before),
            "the past of {} is not its source's",
            child.id
        );
        figure!(
            "{}: {} counts shared, {} its own",
            child.id,
            before.len(),
            after.len()
        );
        instants.push(before.len());
    }
    ensure!(
        instants
            .iter()
            .all(|instant| *instant == instants[0] && *instant > 0),
        "children of different instants: {instants:?}"
    );
    Ok(())
}

/// Each goes its own way: what one changes, no other sees.
async fn own_ways(client: &Client, source: &str, children: &[Sandbox]) -> Result<()> {
    let all: Vec<&str> = std::iter::once(source)
        .chain(children.iter().map(|child| child.id.as_str()))
        .collect();
    for id in &all {
        output(client, id, &format!("echo {id} > /workspace/owner")).await?;
        keeper::ask(client, id, &format!("set owner {id}")).await?;
    }
    for id in &all {
        let (memory, disk) = (
            keeper::ask(client, id, "get owner").await?,
            output(client, id, "cat /workspace/owner").await?,
        );
        ensure!(
            memory == **id && disk == **id,
            "{id} holds {memory}, {disk}"
        );
    }
    Ok(())
}

async fn fork(scale: Scale) -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let source = create(&client, "base").await?.id;
    keeper::start(&client, &source, scale.objects_mib).await?;
    let hash = keeper::ask(&client, &source, "hash").await?;

    let children = fork_under_a_stream(&client, &source, scale.children).await?;
    for child in &children {
        // The server was listening at the fork, and answers in every copy.
        let of_child = keeper::ask(&client, &child.id, "hash").await?;
        ensure!(of_child == hash, "the objects of {} differ", child.id);
    }
    ensure!(keeper::ask(&client, &source, "hash").await? == hash);
    own_ways(&client, &source, &children).await?;
    one_instant(&client, &source, &children).await?;
    daemon.finish().await
}

#[tokio::test]
async fn three_children_continue_from_one_instant() -> Result<()> {
    fork(Scale {
        children: 3,
        objects_mib: 60,
    })
    .await
}

#[tokio::test]
#[ignore = "soak: five children of a session of 200 MiB"]
async fn five_children_of_a_large_session_continue_from_one_instant() -> Result<()> {
    fork(Scale {
        children: 5,
        objects_mib: 200,
    })
    .await
}
