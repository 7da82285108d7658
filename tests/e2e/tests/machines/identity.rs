//! Twenty sandboxes of one snapshot differ in everything that must differ, before the first user
//! instruction runs.
//!
//! The template of this test was baked with a spy in it: a user process that was running at the
//! capture, and that writes down what it sees as soon as it runs again. If user code could run
//! before the new identity is in place, the spy would see the old one.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use dayfly_api::CreateSandbox;
use dayfly_client::ClientError;
use dayfly_e2e::{Daemon, DaemonOptions, create, exec, patient, setting_or_skip, until};

const CLOCK_ERROR_MAX_MS: f64 = 100.0;

/// The distance between the wall clock and the monotonic one changes when the guest is given its
/// new clock, and at no other time. It is read around each look, so that a look that the freeze cut
/// in two is told apart: the first look that began after the thaw counts.
const SPY: &str = r#"
import json, os, time, uuid
def distance():
    return time.time() - time.monotonic()
def look():
    before = distance()
    seen = {
        "hostname": os.uname().nodename,
        "machine_id": open("/etc/machine-id").read().strip(),
        "random": os.getrandom(32).hex(),
        "uuid": str(uuid.uuid4()),
    }
    return before, distance(), seen
_, last, old = look()
while True:
    before, after, seen = look()
    if abs(after - before) > 0.1:
        before, after, seen = look()
    elif abs(before - last) <= 0.1:
        last = after
        continue
    with open("/dev/shm/spy.new", "w") as f:
        json.dump({"old": old, "seen": seen}, f)
    os.rename("/dev/shm/spy.new", "/dev/shm/spy")
    break
"#;

fn recipe() -> String {
    format!(
        "name = \"spy\"\ndescription = \"base with a witness\"\nversion = 1\nfrom = \"base\"\n\
         memory_mib = 512\nvcpus = 1\ndisk_mib = 2048\n\
         start = ['''exec python3 -c '{}' ''']\n",
        SPY.replace('\'', "\"")
    )
}

struct Witness {
    seen: serde_json::Value,
    old: serde_json::Value,
    clock_error_ms: f64,
}

async fn ask(client: &dayfly_client::Client, id: &str) -> Result<Witness> {
    let text = until("the spy has written", Duration::from_secs(30), || async {
        let answer = exec(client, id, "cat /dev/shm/spy").await.ok()?;
        (answer.exit_code == 0).then_some(answer.stdout)
    })
    .await?;
    let told: serde_json::Value = serde_json::from_str(&text)?;
    // The guest's clock as it is now against the host's around the question.
    let before = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)?
        .as_secs_f64();
    let answer = exec(client, id, "date +%s.%N").await?;
    let after = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)?
        .as_secs_f64();
    let guest: f64 = answer.stdout.trim().parse().context("no clock")?;
    let error = if guest < before {
        before - guest
    } else {
        (guest - after).max(0.0)
    };
    Ok(Witness {
        seen: told["seen"].clone(),
        old: told["old"].clone(),
        clock_error_ms: error * 1000.0,
    })
}

/// The daemon has just started, so the template of this test cannot be ready yet.
async fn refused_while_baking(client: &dayfly_client::Client) -> Result<Duration> {
    let request = CreateSandbox {
        template: Some("spy".to_owned()),
        ..CreateSandbox::default()
    };
    let start = Instant::now();
    let refusal = client.create_sandbox(&request).await;
    let took = start.elapsed();
    let refusal = refusal.err().context("created")?;
    let ClientError::Api(error) = &refusal else {
        anyhow::bail!("not an answer: {refusal}");
    };
    dayfly_e2e::figure!("refused while baking after {took:?}: {}", error.message);
    ensure!(
        error.status == 503 && error.code == "template_baking",
        "{error:?}"
    );
    ensure!(
        error.retry_after.is_some() && error.percent.is_some(),
        "{error:?}"
    );
    Ok(took)
}

#[tokio::test]
async fn six_sandboxes_differ_before_user_code_runs() -> Result<()> {
    sandboxes_differ(6).await
}

#[tokio::test]
#[ignore = "soak: twenty sandboxes"]
async fn twenty_sandboxes_differ_before_user_code_runs() -> Result<()> {
    sandboxes_differ(20).await
}

async fn sandboxes_differ(count: usize) -> Result<()> {
    let setting = setting_or_skip!();
    let options = DaemonOptions {
        recipes: vec![("spy.toml".to_owned(), recipe())],
        ..DaemonOptions::default()
    };
    let daemon = Daemon::start(&setting, options).await?;
    let client = daemon.client()?;
    // The faster of two: a busy host may delay one of them.
    let took = refused_while_baking(&client)
        .await?
        .min(refused_while_baking(&client).await?);
    ensure!(
        took < patient(Duration::from_millis(100)),
        "the refusal took {took:?}"
    );
    daemon
        .wait_for_template("base", Duration::from_secs(240))
        .await?;
    let mut values: [BTreeSet<String>; 4] = Default::default();
    let mut worst_ms: f64 = 0.0;
    for _ in 0..count {
        let sandbox = create(&client, "spy").await?;
        let witness = ask(&client, &sandbox.id).await?;
        ensure!(
            witness.seen["hostname"] == sandbox.id.as_str(),
            "{}",
            witness.seen
        );
        for (index, name) in ["hostname", "machine_id", "random", "uuid"]
            .iter()
            .enumerate()
        {
            ensure!(
                witness.seen[name] != witness.old[name],
                "the spy still saw the old {name}"
            );
            let text = witness.seen[name].as_str().context("no text")?;
            ensure!(
                values[index].insert(text.to_owned()),
                "{name} {text} came twice"
            );
        }
        worst_ms = worst_ms.max(witness.clock_error_ms);
        client.delete_sandbox(&sandbox.id).await?;
    }
    dayfly_e2e::figure!("{count} sandboxes, all distinct; largest clock error {worst_ms:.1} ms");
    ensure!(
        worst_ms < CLOCK_ERROR_MAX_MS,
        "the clock is {worst_ms} ms off"
    );
    daemon.finish().await
}
