//! More sandboxes than the memory that they are promised in full: the idle ones sleep for others,
//! and their users notice a wake and nothing else.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSandbox, PromiseClass, Sandbox};
use dayfly_client::Client;
use dayfly_e2e::{
    Daemon, DaemonOptions, Times, engine, exec, figure, output, patient, refusal, setting_or_skip,
    shell, until,
};

const SHARE: u64 = 8;
/// What a sandbox of 512 MiB is promised there, with its engine.
const PART_MIB: u64 = 768 / SHARE;
/// Until somebody has been idle for long enough, twice, and was captured.
const ROUND: Duration = Duration::from_secs(60);
const MANY: usize = 300;
/// Of those, the ones that work.
const WORKING: usize = 20;

/// A daemon on a host with room for so many shared sandboxes.
pub(crate) fn room_for(parts: u64) -> Result<DaemonOptions> {
    let total = dayfly_host::memory::host_memory()?.total_bytes >> 20;
    let reserve = total - parts * PART_MIB - PART_MIB / 2;
    let words = [
        "--memory-share",
        "8",
        "--disk-share",
        "8",
        "--memory-reserve",
    ];
    let mut arguments: Vec<String> = words.map(str::to_owned).to_vec();
    arguments.push(reserve.to_string());
    Ok(DaemonOptions {
        arguments,
        ..DaemonOptions::default()
    })
}

/// Makes one as soon as there is room for it.
pub(crate) async fn one_more(client: &Client) -> Result<Sandbox> {
    until("there is room for one more", patient(ROUND), || async {
        client.create_sandbox(&CreateSandbox::default()).await.ok()
    })
    .await
}

pub(crate) async fn is_asleep(client: &Client, id: &str) -> Result<bool> {
    Ok(client.get_sandbox(id).await?.status == "hibernated")
}

#[tokio::test]
async fn who_is_idle_sleeps_for_others_and_who_works_or_is_reserved_does_not() -> Result<()> {
    let setting = setting_or_skip!();
    // A reserved one is promised as much as eight shared ones.
    let (daemon, client) = Daemon::ready(&setting, room_for(8 + 3)?).await?;
    let wish = CreateSandbox {
        class: Some(PromiseClass::Reserved),
        ..CreateSandbox::default()
    };
    let reserved = client.create_sandbox(&wish).await?;
    let worker = one_more(&client).await?;
    ensure!(worker.class == PromiseClass::Shared, "{worker:?}");
    exec(
        &client,
        &worker.id,
        "sh -c 'while :; do :; done' > /dev/null 2>&1 &",
    )
    .await?;
    let mut idle = Vec::new();
    for number in 0..4 {
        let sandbox = one_more(&client).await?;
        output(
            &client,
            &sandbox.id,
            &format!("echo {number} > /dev/shm/mark"),
        )
        .await?;
        idle.push(sandbox.id);
    }
    let mut asleep = 0;
    for id in &idle {
        asleep += usize::from(is_asleep(&client, id).await?);
    }
    ensure!(asleep == 2, "{asleep} of 4 sleep where two have room");
    let first = client.get_sandbox(&idle[0]).await?;
    ensure!(
        first.sleep_reason.as_deref() == Some("pressure"),
        "{first:?}"
    );
    ensure!(
        engine::engine_pid(&daemon, &idle[0]).is_err(),
        "its engine still runs"
    );
    for id in [&reserved.id, &worker.id] {
        let now = client.get_sandbox(id).await?;
        ensure!(
            now.status == "running" && now.sleep_reason.is_none(),
            "{now:?}"
        );
    }
    for (number, id) in idle.iter().enumerate() {
        let mark = until("it wakes", patient(ROUND), || async {
            output(&client, id, "cat /dev/shm/mark").await.ok()
        });
        ensure!(
            mark.await?.trim() == number.to_string(),
            "another machine responds"
        );
    }
    let works = output(&client, &worker.id, "pgrep -c -f 'while :'").await?;
    ensure!(works.trim() != "0", "the work was stopped");
    daemon.finish().await
}

#[tokio::test]
async fn a_followed_command_goes_on_over_a_sleep_for_others_without_a_gap() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, room_for(2)?).await?;
    let id = one_more(&client).await?.id;
    output(&client, &id, "mkfifo /tmp/pipe").await?;
    let (follower, followed) = (client.clone(), id.clone());
    let following = tokio::spawn(async move {
        let text = "echo begun; cat /tmp/pipe; echo over";
        follower.exec(&followed, &shell(text)).await
    });
    // Who only follows goes last, so all others sleep first.
    let mut others = Vec::new();
    for _ in 0..6 {
        if is_asleep(&client, &id).await? {
            break;
        }
        others.push(one_more(&client).await?.id);
    }
    ensure!(
        is_asleep(&client, &id).await?,
        "it never slept for the others"
    );
    ensure!(!following.is_finished(), "its follower noticed");
    // With room again it goes on by itself: a command was under way.
    for other in &others {
        client.delete_sandbox(other).await?;
    }
    until("it goes on by itself", patient(ROUND), || async {
        let now = client.get_sandbox(&id).await.ok()?;
        (now.status == "running").then_some(())
    })
    .await?;
    output(&client, &id, "echo middle > /tmp/pipe").await?;
    let result = tokio::time::timeout(patient(ROUND), following).await???;
    ensure!(result.exit_code == 0, "{result:?}");
    ensure!(
        result.stdout == "begun\nmiddle\nover\n",
        "{:?}",
        result.stdout
    );
    daemon.finish().await
}

#[tokio::test]
async fn a_shared_sandbox_is_refused_where_the_host_has_none() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let wish = CreateSandbox {
        class: Some(PromiseClass::Shared),
        ..CreateSandbox::default()
    };
    refusal(client.create_sandbox(&wish).await, "invalid_request")?;
    let usual = client.create_sandbox(&CreateSandbox::default()).await?;
    ensure!(usual.class == PromiseClass::Reserved, "{usual:?}");
    daemon.finish().await
}

/// What an engine may wake for in a second when its guest has nothing to do.
const IDLE_WAKES_MAX: u64 = 30;
const LOOK: Duration = Duration::from_secs(10);

/// How often the engine's main thread has slept by itself so far.
fn sleeps_of(pid: i32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    Ok(line.context("no such line")?.trim().parse()?)
}

/// A host has hundreds of idle guests. Time of CPUs differs by machine; what wakes an engine does not.
#[tokio::test]
async fn an_idle_sandbox_seldom_wakes_its_host() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = client.create_sandbox(&CreateSandbox::default()).await?.id;
    output(&client, &id, "true").await?;
    let pid = engine::engine_pid(&daemon, &id)?;
    // What a restore leaves to be done is over by then.
    tokio::time::sleep(LOOK).await;
    let (before, used) = (sleeps_of(pid)?, engine::processor_time(pid)?);
    tokio::time::sleep(LOOK).await;
    let each = (sleeps_of(pid)? - before) / LOOK.as_secs();
    let used = engine::processor_time(pid)? - used;
    figure!(
        "an idle sandbox wakes its engine {each} times in a second; {used:.1?} of a CPU in {LOOK:?}"
    );
    ensure!(each <= IDLE_WAKES_MAX, "{each} wakes in a second");
    daemon.finish().await
}

/// Memory of the host that is gone since then, for each of so many.
fn each_mib(before: u64, count: usize) -> Result<f64> {
    let now = dayfly_host::memory::host_memory()?.available_bytes;
    let gone = before.saturating_sub(now) >> 10;
    let count = u64::try_from(count)?.max(1);
    Ok(f64::from(u32::try_from(gone / count)?) / 1024.0)
}

#[tokio::test]
#[ignore = "soak: three hundred machines"]
async fn three_hundred_idle_sandboxes_share_a_host() -> Result<()> {
    let setting = setting_or_skip!();
    let words = ["--memory-share", "12", "--disk-share", "64"];
    let options = DaemonOptions {
        arguments: words.map(str::to_owned).to_vec(),
        ..DaemonOptions::default()
    };
    let (daemon, client) = Daemon::ready(&setting, options).await?;
    let before = dayfly_host::memory::host_memory()?.available_bytes;
    let mut made = Vec::new();
    let mut creates = Times::default();
    for number in 0..MANY {
        let start = Instant::now();
        let one = one_more(&client).await;
        made.push(one.with_context(|| format!("after {number}"))?.id);
        creates.add(start.elapsed());
        if made.len().is_multiple_of(50) {
            let each = each_mib(before, made.len())?;
            let (count, p50) = (made.len(), creates.percentile(50));
            figure!(
                "{count} idle sandboxes: {each:.1} MiB of host memory each, create p50 {p50:?}"
            );
        }
    }
    for id in made.iter().take(WORKING) {
        let text = "sh -c 'while :; do i=$((i + 1)); echo $i > /tmp/count; sleep 1; done' \
                    > /dev/null 2>&1 &";
        exec(&client, id, text).await?;
    }
    let mut execs = Times::default();
    for id in &made {
        let start = Instant::now();
        let result = exec(&client, id, "true").await;
        let result = result.with_context(|| format!("{id} does not respond"))?;
        ensure!(result.exit_code == 0, "{id}: {result:?}");
        execs.add(start.elapsed());
    }
    let (p50, p99) = (execs.percentile(50), execs.percentile(99));
    let each = each_mib(before, MANY)?;
    let node = client.node().await?;
    figure!(
        "{MANY} sandboxes, {WORKING} working, after an exec in each: {each:.1} MiB of host memory \
         each, exec p50 {p50:?}, p99 {p99:?}; {} put to sleep for others",
        node.put_to_sleep
    );
    for id in made.iter().take(WORKING) {
        let count: u64 = output(&client, id, "cat /tmp/count")
            .await?
            .trim()
            .parse()?;
        ensure!(count > 1, "{id} was stopped at {count}");
    }
    let failed = client.list_sandboxes().await?;
    let failed = failed.iter().filter(|one| one.status == "failed").count();
    ensure!(failed == 0, "{failed} have failed");
    daemon.finish().await
}
