//! Sandboxes in other sizes than their template's: each size is baked once, kept, and as fast as any.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSandbox, ForkSandbox, Sandbox, TemplateState};
use dayfly_client::Client;
use dayfly_e2e::{
    Daemon, DaemonOptions, Times, exec, figure, output, patient, setting_or_skip, until,
};
use dayfly_types::ErrorCode;

/// A boot, a capture and digests.
const BAKED: Duration = Duration::from_secs(300);
const SOON: Duration = Duration::from_secs(60);

fn sized(memory_mb: Option<u64>, cpu: Option<f64>) -> CreateSandbox {
    CreateSandbox {
        template: Some("base".to_owned()),
        memory_mb,
        cpu,
        ..CreateSandbox::default()
    }
}

/// What the guest's kernel says it has, in MiB. It keeps some for itself.
async fn guest_memory(client: &Client, id: &str) -> Result<u64> {
    let text = output(client, id, "awk '/^MemTotal/ {print $2}' /proc/meminfo").await?;
    Ok(text.trim().parse::<u64>()? >> 10)
}

async fn has_memory(client: &Client, id: &str, mib: u64) -> Result<()> {
    let seen = guest_memory(client, id).await?;
    ensure!(seen <= mib && seen > mib - 128, "{seen} MiB seen of {mib}");
    Ok(())
}

/// Creates as a client that waits does.
pub(crate) async fn create_when_baked(client: &Client, request: &CreateSandbox) -> Result<Sandbox> {
    until("it is created", patient(BAKED), || async {
        match client.create_sandbox(request).await {
            Ok(sandbox) => Some(Ok(sandbox)),
            Err(error) if error.api_code() == Some(ErrorCode::TemplateBaking) => None,
            Err(error) => Some(Err(error)),
        }
    })
    .await?
    .context("cannot create")
}

fn versions(daemon: &Daemon) -> Result<usize> {
    Ok(std::fs::read_dir(daemon.path().join("node/templates/base"))?.count())
}

#[tokio::test]
async fn sizes_are_baked_once_and_kept() -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let before = versions(&daemon)?;
    for uneven in [600, 256, 1 << 20] {
        let refused = client.create_sandbox(&sized(Some(uneven), None)).await;
        let code = refused.err().and_then(|error| error.api_code());
        ensure!(
            code == Some(ErrorCode::InvalidRequest),
            "{uneven}: {code:?}"
        );
    }
    let refused = client.create_sandbox(&sized(Some(640), None)).await;
    let refused = refused.err().context("it was there at once")?;
    ensure!(
        refused.api_code() == Some(ErrorCode::TemplateBaking),
        "{refused:?}"
    );
    let first = create_when_baked(&client, &sized(Some(640), None)).await;
    let first = first.with_context(|| daemon.last_of_log())?;
    let variant = first.variant.clone().context("nothing is told")?;
    ensure!(
        variant.first_use && (variant.memory_mb, variant.cpu) == (640, 1),
        "{variant:?}"
    );
    let bake_ms = variant.bake_ms.filter(|ms| *ms > 0).context("no time")?;
    figure!("640 MiB: baked in {bake_ms} ms");
    has_memory(&client, &first.id, 640).await?;
    let second = client.create_sandbox(&sized(Some(640), None)).await?;
    let told = second.variant.clone().context("nothing is told")?;
    ensure!(!told.first_use && told.bake_ms == Some(bake_ms), "{told:?}");
    ensure!(versions(&daemon)? == before + 1, "it was baked twice");
    // Ahead, with more CPUs than the template has.
    let baked = daemon
        .dayfly(&[
            "template", "bake", "base", "--memory", "768", "--cpu", "2", "--wait",
        ])
        .await?;
    ensure!(baked.status.success(), "{baked:?}");
    let large = client.create_sandbox(&sized(Some(768), Some(1.5))).await?;
    let told = large.variant.clone().context("nothing is told")?;
    ensure!(!told.first_use && told.cpu == 2, "{told:?}");
    ensure!((large.cpu, large.cpu_limit) == (2, Some(1.5)), "{large:?}");
    has_memory(&client, &large.id, 768).await?;
    ensure!(output(&client, &large.id, "nproc").await?.trim() == "2");
    let plain = client.create_sandbox(&sized(None, None)).await?;
    ensure!(
        plain.variant.is_none() && plain.memory_mb == 512,
        "{plain:?}"
    );
    has_memory(&client, &plain.id, 512).await?;
    for variant in client.template("base").await?.variants {
        let (memory, bytes) = (variant.memory_mb, variant.size_bytes);
        figure!("{memory} MiB: {} MiB on the disk", bytes >> 20);
    }
    let told = daemon.dayfly(&["template", "info", "base"]).await?;
    let told = String::from_utf8(told.stdout)?;
    ensure!(
        told.contains("640 MiB, 1 CPU") && told.contains("768 MiB, 2 CPU"),
        "{told}"
    );
    sleeps_forks_and_starts_again(&mut daemon, &client, &first, &large).await?;
    for id in [first.id, second.id, large.id, plain.id] {
        client.delete_sandbox(&id).await?;
    }
    ensure!(
        versions(&daemon)? == before + 2,
        "a size was not kept, or baked again"
    );
    daemon.finish().await
}

/// What becomes of a sandbox of a variant finds the memory that it had.
async fn sleeps_forks_and_starts_again(
    daemon: &mut Daemon,
    client: &Client,
    first: &Sandbox,
    large: &Sandbox,
) -> Result<()> {
    exec(client, &first.id, "echo kept > /dev/shm/mark").await?;
    client.hibernate_sandbox(&first.id).await?;
    let forked = client
        .fork_sandbox(&large.id, &ForkSandbox::default())
        .await?;
    let child = forked.children.first().context("no child")?;
    has_memory(client, &child.id, 768).await?;
    client.delete_sandbox(&child.id).await?;
    daemon.terminate().await?;
    daemon.start_again().await?;
    until("the sizes are found", patient(SOON), || async {
        let template = client.template("base").await.ok()?;
        let ready = template.variants.iter();
        let ready = ready.filter(|one| one.usable && one.state == TemplateState::Ready);
        (ready.count() == 2).then_some(())
    })
    .await?;
    ensure!(output(client, &first.id, "cat /dev/shm/mark").await?.trim() == "kept");
    has_memory(client, &first.id, 640).await?;
    let fresh = client.create_sandbox(&sized(Some(640), None)).await?;
    ensure!(
        fresh.variant.as_ref().is_some_and(|one| !one.first_use),
        "{fresh:?}"
    );
    client.delete_sandbox(&fresh.id).await?;
    Ok(())
}

pub(crate) async fn pools_are_full(client: &Client) -> Result<()> {
    until("the pools are full", patient(SOON), || async {
        let node = client.node().await.ok()?;
        let mut engines = node.parked_engines.iter();
        let is_full = engines.all(|pool| pool.parked >= pool.target);
        (is_full && node.parked_slots >= node.parked_slots_target).then_some(())
    })
    .await
}

/// How many of each size.
const TURNS: usize = 40;
const RATIO_MAX: f64 = 1.1;

#[tokio::test]
#[ignore = "soak: forty creates of each of four sizes, in turns, on a quiet machine"]
async fn a_create_of_another_size_takes_no_longer() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let sizes = [None, Some(640), Some(1024), Some(2048)];
    for memory in sizes {
        let sandbox = create_when_baked(&client, &sized(memory, None)).await?;
        if let Some(variant) = &sandbox.variant {
            let bake_ms = variant.bake_ms.unwrap_or_default();
            figure!("{} MiB: baked in {bake_ms} ms", variant.memory_mb);
        }
        client.delete_sandbox(&sandbox.id).await?;
    }
    let mut times = [(); 4].map(|()| Times::default());
    for turn in 0..=TURNS {
        for (memory, times) in sizes.iter().zip(&mut times) {
            pools_are_full(&client).await?;
            let start = Instant::now();
            let sandbox = client.create_sandbox(&sized(*memory, None)).await?;
            exec(&client, &sandbox.id, "true").await?;
            // The first of each reads what nobody has read yet.
            if turn > 0 {
                times.add(start.elapsed());
            }
            let is_first = sandbox.variant.as_ref().is_some_and(|one| one.first_use);
            ensure!(!is_first, "it was baked again");
            client.delete_sandbox(&sandbox.id).await?;
        }
    }
    let own = times[0].percentile(50);
    for (memory, times) in sizes.iter().zip(&times) {
        let ratio = times.percentile(50).as_secs_f64() / own.as_secs_f64();
        let (p50, p99) = (times.percentile(50), times.percentile(99));
        let name = memory.map_or_else(|| "512 MiB, its own".to_owned(), |mib| format!("{mib} MiB"));
        figure!("{name}: n {TURNS}, p50 {p50:?}, p99 {p99:?}, {ratio:.3} times the template's own");
        ensure!(ratio <= RATIO_MAX, "{name}: {ratio:.3} times");
    }
    daemon.finish().await
}
