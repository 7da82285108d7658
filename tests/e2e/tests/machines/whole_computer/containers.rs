//! Docker, its compose and podman in the template `agent`, with images from a registry of the test's
//! own internet, under a policy that lets through that registry and one host.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dayfly_api::{CreateSandbox, NetworkMode, NetworkWish, RuleWish};
use dayfly_client::{Client, FileBody, WriteOptions};
use dayfly_e2e::{figure, patient, setting_or_skip, shell};
use dayfly_netlab::internet::{ALLOWED, OTHER};

use crate::images::registry::{ADDRESS, HOST, Lab, PASSWORD, PORT};

/// It is baked before; this is for a look at its files.
const READY: Duration = Duration::from_secs(600);
/// Engines that start under emulation.
const COMMAND_SECONDS: f64 = 300.0;

/// The sandbox, with a clock for what is done in it.
struct Guest {
    client: Client,
    id: String,
}

impl Guest {
    async fn create(client: Client) -> Result<Self> {
        let (by_name, by_address) = (format!("{HOST}:{PORT}"), format!("{ADDRESS}/32:{PORT}"));
        let rules = [&by_name, &by_address, "allowed.test:80"];
        let request = CreateSandbox {
            template: Some("agent".to_owned()),
            network: Some(NetworkWish {
                mode: NetworkMode::Allowlist,
                rules: rules.map(RuleWish::text).into(),
            }),
            ..CreateSandbox::default()
        };
        let id = client.create_when_ready(&request, |_| {}).await?.id;
        Ok(Self { client, id })
    }

    async fn write(&self, path: &str, content: &str) -> Result<()> {
        let options = WriteOptions {
            user: Some("root".to_owned()),
            ..WriteOptions::default()
        };
        let body = FileBody::from_bytes(content.as_bytes().to_vec());
        let written = self.client.write_file_with(&self.id, path, body, &options);
        written.await?;
        Ok(())
    }

    /// What a command of the default user prints on either stream. It must succeed.
    async fn say(&self, what: &str, text: &str) -> Result<String> {
        let mut request = shell(&format!("exec 2>&1\n{text}"));
        request.timeout_seconds = Some(COMMAND_SECONDS);
        let begun = Instant::now();
        let result = self.client.exec(&self.id, &request).await?;
        ensure!(result.exit_code == 0, "{what}: {result:?}");
        figure!("{what}, {:.1} s", begun.elapsed().as_secs_f64());
        Ok(result.stdout.trim().to_owned())
    }
}

/// What a container says that asks a host by HTTP.
fn asks(address: &str, name: &str) -> String {
    format!(
        r#"/bin/busybox sh -c "printf 'GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n' | /bin/busybox nc {address} 80""#
    )
}

async fn logs_in(guest: &Guest, authority: &str) -> Result<()> {
    // Where Docker looks for whom to believe, and where podman does.
    for engine in ["docker", "containers"] {
        guest
            .write(
                &format!("/etc/{engine}/certs.d/{HOST}:{PORT}/ca.crt"),
                authority,
            )
            .await?;
    }
    let log_in = format!("echo {PASSWORD} | docker login -u puller --password-stdin {HOST}:{PORT}");
    let said = guest.say("docker starts, and logs in", &log_in).await?;
    ensure!(said.contains("Login Succeeded"), "{said}");
    let log_in =
        format!("echo {PASSWORD} | sudo podman login -u puller --password-stdin {HOST}:{PORT}");
    guest.say("podman logs in", &log_in).await?;
    Ok(())
}

async fn docker_runs(guest: &Guest, image: &str) -> Result<()> {
    let run = format!("docker run --rm {image} /bin/busybox echo hello from a container");
    let said = guest.say("docker run, with a pull", &run).await?;
    ensure!(said.ends_with("hello from a container"), "{said}");
    let about = "docker info --format '{{.Driver}} {{.CgroupVersion}} {{.CgroupDriver}}'";
    let said = guest.say("docker info", about).await?;
    ensure!(said == "overlay2 2 cgroupfs", "{said}");
    figure!("{said}");
    let limited = format!(
        "docker run --rm --memory 64m --cpus 0.5 --pids-limit 50 {image} \
         /bin/busybox cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max"
    );
    let said = guest.say("docker run with limits", &limited).await?;
    ensure!(said == "67108864\n50", "{said}");
    Ok(())
}

async fn compose_runs_two_services(guest: &Guest, image: &str) -> Result<()> {
    let text = format!(
        r#"version: "3"
services:
  site:
    image: {image}
    command: ["/bin/busybox", "sh", "-c", "mkdir /site; echo from the other one > /site/word; exec /bin/busybox httpd -f -p 8080 -h /site"]
  asker:
    image: {image}
    depends_on: [site]
    command: ["/bin/busybox", "sh", "-c", "until /bin/busybox wget -q -O - http://site:8080/word; do sleep 1; done"]
"#
    );
    guest
        .write("/workspace/two/docker-compose.yml", &text)
        .await?;
    // It gives a busy Docker a minute for each request by itself.
    let up = "cd /workspace/two && export COMPOSE_HTTP_TIMEOUT=250 && docker-compose up --no-color --exit-code-from asker";
    let said = guest.say("docker-compose up with two services", up).await?;
    ensure!(said.contains("from the other one"), "{said}");
    let down = "cd /workspace/two && COMPOSE_HTTP_TIMEOUT=250 docker-compose down";
    guest.say("docker-compose down", down).await?;
    Ok(())
}

async fn podman_builds(guest: &Guest, image: &str) -> Result<()> {
    let text = format!(
        "FROM {image}\nRUN /bin/busybox echo built inside > /word\nCMD [\"/bin/busybox\", \"cat\", \"/word\"]\n"
    );
    guest.write("/workspace/one/Containerfile", &text).await?;
    for (who, sudo) in [("root", "sudo "), ("a user", "")] {
        if sudo.is_empty() {
            let log_in =
                format!("echo {PASSWORD} | podman login -u puller --password-stdin {HOST}:{PORT}");
            guest.say("podman of a user logs in", &log_in).await?;
        }
        let build = format!("cd /workspace/one && {sudo}podman build -t one .");
        guest.say(&format!("podman build as {who}"), &build).await?;
        let run = format!("{sudo}podman run --rm one");
        let said = guest.say(&format!("podman run as {who}"), &run).await?;
        ensure!(said.ends_with("built inside"), "{said}");
    }
    let kept = "sudo buildah from --name again localhost/one && sudo buildah run again -- /bin/busybox cat /word";
    let said = guest.say("buildah from and run", kept).await?;
    ensure!(said.ends_with("built inside"), "{said}");
    Ok(())
}

/// By name and by address, with Docker's network and podman's. What is allowed comes through.
async fn a_refused_container_is_told_why(guest: &Guest, image: &str) -> Result<()> {
    for engine in ["docker", "sudo podman"] {
        let allowed = format!(
            "{engine} run --rm {image} {}",
            asks("allowed.test", "allowed.test")
        );
        let said = guest
            .say(&format!("{engine}: an allowed host by name"), &allowed)
            .await?;
        ensure!(said.contains("hello from allowed"), "{said}");
        let refused = format!("{engine} run --rm {image} {}", asks(OTHER, "other.test"));
        let said = guest
            .say(&format!("{engine}: a host that is not"), &refused)
            .await?;
        ensure!(said.contains("403") && said.contains("no_rule"), "{said}");
        ensure!(
            said.contains("egress_denied") && said.contains("other.test"),
            "{said}"
        );
        figure!(
            "a container of {engine} was told: {}",
            said.lines().last().unwrap_or_default()
        );
    }
    Ok(())
}

#[tokio::test]
#[ignore = "soak: needs the template with engines of containers"]
async fn containers_run_inside_and_are_told_what_the_policy_refuses() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    lab.daemon
        .wait_for_template("agent", patient(READY))
        .await?;
    lab.push()?;
    let site = lab.internet.http(ALLOWED, 80, "allowed");
    let other = lab.internet.sink(OTHER, 80);
    let guest = Guest::create(lab.daemon.client()?).await?;
    let memory = "grep MemAvailable /proc/meminfo; ps -e -o comm= | grep -c dockerd || true";
    let before = guest.say("before anything", memory).await?;
    ensure!(
        before.ends_with('0'),
        "Docker runs before anybody asked: {before}"
    );
    figure!("{}", before.replace('\n', ", dockerd: "));

    logs_in(&guest, &lab.authority()?).await?;
    let image = format!("{HOST}:{PORT}/small:1");
    docker_runs(&guest, &image).await?;
    a_refused_container_is_told_why(&guest, &image).await?;
    podman_builds(&guest, &image).await?;
    compose_runs_two_services(&guest, &image).await?;
    ensure!(
        site.requests() + site.connections() > 0,
        "nobody came to the site"
    );
    other.assert_nothing_came();
    ensure!(
        lab.registry.requests("small/blobs/", 200) > 0,
        "nobody pulled"
    );
    let after = guest.say("behind everything", memory).await?;
    figure!("{}", after.replace('\n', ", dockerd: "));

    // What runs in a container goes on over a sleep.
    let start = format!(
        "docker run -d --name clock {image} /bin/busybox sh -c 'while sleep 1; do date; done'"
    );
    guest.say("docker run in the background", &start).await?;
    guest.client.hibernate_sandbox(&guest.id).await?;
    guest.client.wake_sandbox(&guest.id).await?;
    let running = guest
        .say(
            "docker ps behind a sleep",
            "docker ps --format '{{.Names}}'",
        )
        .await?;
    ensure!(running == "clock", "{running}");
    guest.client.delete_sandbox(&guest.id).await?;
    lab.finish().await
}
