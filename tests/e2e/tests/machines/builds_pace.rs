//! A create from a template that was built, beside one from the template that it was built on.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use dayfly_e2e::{Daemon, DaemonOptions, Times, create, exec, figure, output, setting_or_skip};

use crate::sizes::pools_are_full;

/// How many of each.
const TURNS: usize = 40;
const RATIO_MAX: f64 = 1.1;
const BUILT_ON: &str = "base";
/// With a server that was started before the capture and waits, with one that wakes twice a second,
/// and without.
const DOCKERFILES: [(&str, &str); 3] = [
    (
        WAITS,
        "FROM base\nUSER root\nRUN head -c 30000000 /dev/urandom > /opt/data\nWORKDIR /srv\n\
         RUN echo warm > word\nHEALTHCHECK --interval=1s --start-period=60s CMD curl -sf localhost:8000/word\n\
         CMD [\"python3\", \"-c\", \"import http.server as h\\ns = h.HTTPServer(('', 8000), \
         h.SimpleHTTPRequestHandler)\\nwhile True: s.handle_request()\"]\n",
    ),
    (
        WAKES,
        "FROM base\nWORKDIR /srv\nUSER root\n\
         RUN echo warm > word\nHEALTHCHECK --interval=1s --start-period=60s CMD curl -sf localhost:8000/word\n\
         CMD [\"python3\", \"-m\", \"http.server\"]\n",
    ),
    (
        "plain",
        "FROM base\nUSER root\nRUN echo plain > /opt/word\n",
    ),
];
const WAITS: &str = "waits";
const WAKES: &str = "wakes";

async fn build(daemon: &Daemon, name: &str, dockerfile: &str) -> Result<()> {
    let context = tempfile::tempdir()?;
    std::fs::write(context.path().join("Dockerfile"), dockerfile)?;
    let path = context.path().to_str().context("a path that is no text")?;
    let built = daemon
        .dayfly(&["template", "build", path, "--tag", name])
        .await?;
    let said = String::from_utf8_lossy(&built.stderr);
    ensure!(built.status.success(), "{said}");
    Ok(())
}

#[tokio::test]
#[ignore = "soak: forty creates of each of four templates, in turns, on a quiet machine"]
async fn a_create_of_a_built_template_takes_no_longer() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    for (name, dockerfile) in DOCKERFILES {
        build(&daemon, name, dockerfile).await?;
    }
    let names = [BUILT_ON, WAITS, WAKES, "plain"];
    let mut times = names.map(|_| Times::default());
    for turn in 0..=TURNS {
        for (name, times) in names.iter().zip(&mut times) {
            pools_are_full(&client).await?;
            let start = Instant::now();
            let sandbox = create(&client, name).await?;
            exec(&client, &sandbox.id, "true").await?;
            // The first of each reads what nobody has read yet, and gets it parked engines.
            if turn > 0 {
                times.add(start.elapsed());
            }
            if [WAITS, WAKES].contains(name) {
                // One request, and no second try.
                let said = output(&client, &sandbox.id, "curl -s localhost:8000/word").await?;
                ensure!(said == "warm", "create {turn}: {said:?}");
            }
            client.delete_sandbox(&sandbox.id).await?;
        }
    }
    let own = times[0].percentile(50);
    let mut slower = Vec::new();
    for (name, times) in names.iter().zip(&times) {
        let ratio = times.percentile(50).as_secs_f64() / own.as_secs_f64();
        let (p50, p99) = (times.percentile(50), times.percentile(99));
        figure!("{name}: n {TURNS}, p50 {p50:?}, p99 {p99:?}, {ratio:.3} times {BUILT_ON}");
        if ratio > RATIO_MAX {
            slower.push(*name);
        }
    }
    ensure!(slower.is_empty(), "more than {RATIO_MAX} times: {slower:?}");
    figure!(
        "{TURNS} of {TURNS} first requests to each server that was started before the capture got a response"
    );
    daemon.finish().await
}
