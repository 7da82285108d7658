//! What a sandbox uses is measured over its life, also over the death of whoever measures.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{SandboxSample, UsageHour};
use dayfly_client::UsageSpan;
use dayfly_e2e::{Daemon, DaemonOptions, create, exec, patient, setting_or_skip, until};

/// Two periods of samples, and some more for a start of the daemon.
const SAMPLED_WITHIN: Duration = Duration::from_secs(25);
const BURN: &str = "i=0; while :; do i=$((i+1)); done";

/// The samples of a sandbox as soon as they fulfil something.
async fn samples(
    daemon: &Daemon,
    id: &str,
    what: &str,
    is_enough: impl Fn(&[SandboxSample]) -> bool,
) -> Result<Vec<SandboxSample>> {
    let client = daemon.client()?;
    until(what, patient(SAMPLED_WITHIN), || async {
        let span = UsageSpan::default();
        let samples = client.sandbox_metrics(id, &span).await.ok()?;
        is_enough(&samples).then_some(samples)
    })
    .await
}

async fn hours(daemon: &Daemon) -> Result<Vec<UsageHour>> {
    let read = daemon.client()?.usage_hours(&UsageSpan::default()).await;
    read.context("cannot read usage by hour")
}

fn sum(hours: &[UsageHour], of: fn(&UsageHour) -> f64) -> f64 {
    hours.iter().map(of).sum()
}

#[tokio::test]
async fn what_a_guest_burns_is_measured_and_survives_a_sigkill_of_the_daemon() -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let began = std::time::Instant::now();
    let id = create(&client, "base").await?.id;
    exec(&client, &id, &format!("({BURN}) >/dev/null 2>&1 &")).await?;
    exec(&client, &id, "head -c 8388608 /dev/urandom > burnt && sync").await?;
    // Nobody gives it an address, and both packets go over its interface.
    exec(&client, &id, "getent hosts dayfly.invalid; true").await?;
    let busy = |samples: &[SandboxSample]| {
        samples.last().is_some_and(|last| {
            let talked = last.network_in_bytes > 0 && last.network_out_bytes > 0;
            talked && last.cpu_us > 1_000_000 && last.disk_bytes >= 4 << 20
        })
    };
    let before = samples(&daemon, &id, "the load is measured", busy).await?;
    let last = before.last().context("there is a sample")?;
    ensure!(last.memory_bytes > 1 << 20, "{last:?}");

    daemon.kill_all().await?;
    daemon.start_again().await?;
    let more = |samples: &[SandboxSample]| samples.len() > before.len();
    let after = samples(&daemon, &id, "measuring goes on", more).await?;
    ensure!(after.starts_with(&before), "{before:?}\n{after:?}");
    let (last, next) = (last.cpu_us, after[before.len()].cpu_us);
    ensure!(next > last, "the counter began anew: {last} {next}");

    let lived = began.elapsed().as_secs_f64();
    let counted = hours(&daemon).await?;
    let seconds = sum(&counted, |hour| hour.sandbox_seconds);
    let cpu = sum(&counted, |hour| hour.cpu_seconds);
    dayfly_e2e::figure!("of {lived:.1} s, {seconds:.1} s and {cpu:.1} s of CPU are counted");
    ensure!(
        seconds <= lived,
        "more than there was: {seconds} of {lived}"
    );
    // All but the last period, and what the create took.
    ensure!(seconds > lived - 15.0, "only {seconds} of {lived}");
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a short life")]
    let measured = after.last().map_or(0.0, |last| last.cpu_us as f64 / 1e6);
    ensure!(cpu >= measured - 0.01, "{cpu} of {measured}");
    let started: u64 = counted.iter().map(|hour| hour.sandboxes_started).sum();
    ensure!(started == 1, "{started} were started");

    let client = daemon.client()?;
    client.delete_sandbox(&id).await?;
    let gone = client.sandbox_metrics(&id, &UsageSpan::default()).await;
    ensure!(gone.is_err(), "{gone:?}");
    daemon.finish().await
}
