//! A sandbox in the middle of its work: a program that holds objects which nothing can compress.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use dayfly_api::{Command, CreateSandbox, Sandbox};
use dayfly_client::Client;

use crate::mark::Mark;
use crate::product::{create_request, request_of};

/// A session outlives all of its forks.
const TTL_SECONDS: u64 = 3600;
/// Randomness is slow in an emulated guest.
const START_DEADLINE_SECONDS: f64 = 600.0;

const PROGRAM: &str = "\
import os, sys, time
objects = [os.urandom(1 << 20) for _ in range(int(sys.argv[1]))]
os.close(os.open('/tmp/session.ready', os.O_CREAT | os.O_WRONLY, 0o644))
while True:
    time.sleep(3600)
";

/// Leaves the program running, and ends when it holds all that it should.
const START: &str = r#"
setsid nohup python3 -c "$PROGRAM" "$MIB" </dev/null >/tmp/session.out 2>&1 &
session=$!
until [ -e /tmp/session.ready ]; do
    kill -0 "$session" 2>/dev/null || { cat /tmp/session.out >&2; exit 1; }
    sleep 0.2
done
"#;

/// Creates a sandbox and starts a session of so many MiB in it.
pub(crate) async fn start_session(
    client: &Client,
    template: &str,
    mark: &Mark,
    mib: u64,
) -> Result<Sandbox> {
    let request = CreateSandbox {
        ttl_seconds: Some(TTL_SECONDS),
        ..create_request(template, mark)
    };
    let sandbox = client.create_sandbox(&request).await;
    let sandbox = sandbox.context("cannot create the parent")?;
    let mut exec = request_of(Command::Shell(START.to_owned()));
    exec.timeout_seconds = Some(START_DEADLINE_SECONDS);
    exec.env = Some(BTreeMap::from([
        ("PROGRAM".to_owned(), PROGRAM.to_owned()),
        ("MIB".to_owned(), mib.to_string()),
    ]));
    let started = client.exec(&sandbox.id, &exec).await;
    let started = started.context("cannot start the session")?;
    if started.exit_code != 0 {
        bail!(
            "the session of {mib} MiB ended in a guest of {} MiB: {}",
            sandbox.memory_mb,
            started.stderr.trim()
        );
    }
    Ok(sandbox)
}
