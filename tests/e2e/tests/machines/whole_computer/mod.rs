//! A sandbox as a whole computer: what engines of containers ask of a kernel, and engines of
//! containers themselves.

mod containers;

use std::time::Instant;

use anyhow::{Result, ensure};
use dayfly_client::{Client, FileBody};
use dayfly_e2e::{Daemon, DaemonOptions, create, figure, output, output_of_root, setting_or_skip};

const PROBE: &str = include_str!("probe.py");
const PLACE: &str = "/tmp/probe.py";
/// What root can do, then what the user of the template can.
const OF_ROOT: [&str; 8] = [
    "modules",
    "overlays",
    "bridge",
    "loop",
    "fuse",
    "groups",
    "tables",
    "forwarding",
];
const OF_A_USER: [&str; 5] = ["ring", "loopback", "perf", "devices", "namespaces"];

async fn probe(client: &Client, id: &str) -> Result<()> {
    client
        .write_file(id, PLACE, FileBody::from_bytes(PROBE.as_bytes().to_vec()))
        .await?;
    let of_root = output_of_root(client, id, &format!("python3 {PLACE} root")).await?;
    let of_a_user = output(client, id, &format!("python3 {PLACE} user")).await?;
    for (said, names) in [(&of_root, &OF_ROOT[..]), (&of_a_user, &OF_A_USER[..])] {
        let begins = |line: &str, name: &&str| line.starts_with(&format!("{name}: "));
        ensure!(
            said.lines().count() == names.len()
                && said
                    .lines()
                    .zip(names)
                    .all(|(line, name)| begins(line, name)),
            "{said}"
        );
        figure!("{said}");
    }
    Ok(())
}

#[tokio::test]
async fn the_kernel_does_what_engines_of_containers_ask_of_it() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let begun = Instant::now();
    let id = create(&client, "base").await?.id;
    probe(&client, &id).await?;
    figure!("in {:?}", begun.elapsed());
    let memory = "grep -E '^(MemTotal|MemAvailable|Slab)' /proc/meminfo";
    figure!("{}", output(&client, &id, memory).await?);
    // Groups of users are frozen with them, wherever they were made: a snapshot is still possible
    // with a process in a group beside those of the agent, and it goes on.
    let beside = "mkdir /sys/fs/cgroup/beside\n\
                  (echo 0 > /sys/fs/cgroup/beside/cgroup.procs; exec setsid sleep 1000) \
                  > /dev/null 2>&1 < /dev/null &\n\
                  until grep -q . /sys/fs/cgroup/beside/cgroup.procs; do sleep 0.1; done";
    output_of_root(&client, &id, beside).await?;
    client.hibernate_sandbox(&id).await?;
    client.wake_sandbox(&id).await?;
    output(&client, &id, "grep -q . /sys/fs/cgroup/beside/cgroup.procs").await?;
    client.delete_sandbox(&id).await?;
    daemon.finish().await
}
