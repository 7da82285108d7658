//! Templates from Dockerfiles: twelve steps, their cache, stages, what a build that was cut off leaves,
//! and what comes back when templates are deleted.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::CreateSandbox;
use dayfly_client::Client;
use dayfly_e2e::{Daemon, DaemonOptions, output, patient, setting_or_skip, until};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout};

/// A builder, twelve snapshots, a boot and a capture.
const BUILT: Duration = Duration::from_secs(240);
/// What is given up is kept for as long as a create may take, and five seconds.
const GIVEN_UP: Duration = Duration::from_secs(90);
const STEPS: usize = 12;

/// Twelve steps that change files; the ninth says `word`.
fn twelve(word: &str) -> String {
    let mut text = "FROM base AS tools\nUSER root\nRUN mkdir /tools && echo tool > /tools/tool\n\
        FROM base\nUSER root\n"
        .to_owned();
    text.push_str("WORKDIR /srv/app\nENV PORT=8000\nCOPY src/ ./\n");
    text.push_str("COPY --from=tools /tools/tool /usr/local/share/tool\n");
    for number in 4..STEPS {
        let said = if number == 9 { word } else { "plain" };
        text.push_str(&format!("RUN echo {said} > step-{number}\n"));
    }
    text.push_str("RUN --mount=type=cache,target=/var/cache/x echo kept > /var/cache/x/y\n");
    text.push_str("USER agent\n");
    text.push_str(
        "HEALTHCHECK --interval=1s --start-period=60s CMD curl -sf localhost:$PORT/step-4\n",
    );
    text.push_str("CMD python3 -m http.server $PORT\n");
    text
}

fn write_context(directory: &Path, dockerfile: &str) -> Result<()> {
    std::fs::create_dir_all(directory.join("src/deep"))?;
    std::fs::write(directory.join("src/main.py"), "print('hello')\n")?;
    std::fs::write(directory.join("src/deep/data"), "data\n")?;
    std::fs::write(directory.join("src/left.log"), "left out\n")?;
    std::fs::write(directory.join(".dockerignore"), "**/*.log\n")?;
    Ok(std::fs::write(directory.join("Dockerfile"), dockerfile)?)
}

/// What `dayfly template build --json` says, line by line.
struct Build {
    child: Child,
    lines: tokio::io::Lines<BufReader<ChildStdout>>,
}

impl Build {
    fn start(daemon: &Daemon, directory: &Path, more: &[&str]) -> Result<Self> {
        let path = directory.to_str().context("a path that is no text")?;
        let mut words = vec!["--json", "template", "build", path];
        words.extend(more);
        let mut command = daemon.command(&words)?;
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let out = child.stdout.take().context("no output")?;
        let lines = BufReader::new(out).lines();
        Ok(Self { child, lines })
    }

    /// Events until one of this name, which is the last.
    async fn until(&mut self, name: &str) -> Result<Vec<Value>> {
        let mut events = Vec::new();
        while let Some(line) = self.lines.next_line().await? {
            let event: Value = serde_json::from_str(&line)?;
            let is_it = event["event"] == name;
            events.push(event);
            if is_it {
                return Ok(events);
            }
        }
        Ok(events)
    }

    /// To its end, which must be good.
    async fn finish(mut self) -> Result<Vec<Value>> {
        let events = tokio::time::timeout(patient(BUILT), self.until("built")).await??;
        let ended = self.child.wait_with_output().await?;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        ensure!(ended.status.success(), "{said}\n{events:#?}");
        Ok(events)
    }
}

/// Names of steps that an event of this name was told of.
fn told(events: &[Value], name: &str) -> Vec<u64> {
    let told = events.iter().filter(|event| event["event"] == name);
    told.filter_map(|event| event["number"].as_u64()).collect()
}

async fn build(daemon: &Daemon, directory: &Path, more: &[&str]) -> Result<Vec<Value>> {
    Build::start(daemon, directory, more)?.finish().await
}

fn last<'a>(events: &'a [Value], field: &str) -> &'a Value {
    events.last().map_or(&Value::Null, |event| &event[field])
}

async fn create(client: &Client, template: &str) -> Result<String> {
    let request = CreateSandbox {
        template: Some(template.to_owned()),
        ..CreateSandbox::default()
    };
    Ok(client.create_when_ready(&request, |_| {}).await?.id)
}

#[tokio::test]
async fn twelve_steps_are_built_and_only_what_changed_is_built_again() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let context = tempfile::tempdir()?;
    write_context(context.path(), &twelve("first"))?;
    let began = Instant::now();
    let first = build(&daemon, context.path(), &["--tag", "app"]).await?;
    println!(
        "twelve steps, two stages and the bake: {:?}",
        began.elapsed()
    );
    let began = Instant::now();
    let second = build(&daemon, context.path(), &["--tag", "app:again"]).await?;
    println!("the same again: {:?}", began.elapsed());
    ensure!(told(&second, "started").is_empty(), "{second:#?}");
    ensure!(
        last(&second, "version") == last(&first, "version"),
        "{second:#?}"
    );
    write_context(context.path(), &twelve("second"))?;
    let began = Instant::now();
    let third = build(&daemon, context.path(), &["--tag", "app"]).await?;
    println!("with another ninth step: {:?}", began.elapsed());
    let all: Vec<&Value> = third
        .iter()
        .filter(|event| event["event"] == "started")
        .collect();
    let run = |event: &&&Value| event["text"].as_str().is_some_and(|text| !is_config(text));
    let rerun: Vec<&str> = all
        .iter()
        .filter(run)
        .filter_map(|event| event["text"].as_str())
        .collect();
    ensure!(rerun.len() == 4, "{rerun:#?}");
    let sandbox = create(&client, "app").await?;
    let said = output(
        &client,
        &sandbox,
        "id -un; pwd; cat step-9 main.py deep/data /usr/local/share/tool; \
         ! test -e left.log && ! test -e /var/cache/x && echo gone",
    )
    .await?;
    ensure!(
        said == "agent\n/srv/app\nsecond\nprint('hello')\ndata\ntool\ngone",
        "{said}"
    );
    // It runs since before the capture; the first request is answered.
    let served = output(&client, &sandbox, "curl -s localhost:8000/step-9").await?;
    ensure!(served == "second", "{served}");
    client.delete_sandbox(&sandbox).await?;
    let old = create(&client, "app:again").await?;
    let said = output(&client, &old, "cat step-9").await?;
    ensure!(said == "first", "{said}");
    given_back(&daemon, &client, &old).await?;
    daemon.finish().await
}

fn is_config(text: &str) -> bool {
    ["USER", "HEALTHCHECK", "CMD", "ENV"]
        .iter()
        .any(|word| text.starts_with(word))
}

/// Templates that are deleted while a sandbox of one runs give their files back, and that sandbox goes
/// on, is captured, and is restored.
async fn given_back(daemon: &Daemon, client: &Client, sandbox: &str) -> Result<()> {
    client.delete_template("app").await?;
    let snapshots = client.list_snapshots(None).await?;
    ensure!(snapshots.len() >= STEPS, "{} snapshots", snapshots.len());
    for snapshot in snapshots {
        client.delete_snapshot(&snapshot.id).await?;
    }
    let node = daemon.path().join("node");
    let left = || {
        let built = |directory: &str| {
            let entries = std::fs::read_dir(node.join(directory));
            let entries = entries.into_iter().flatten().flatten();
            let is_built = |entry: &std::fs::DirEntry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_full =
                    std::fs::read_dir(entry.path()).is_ok_and(|mut all| all.next().is_some());
                (name.starts_with("built.") || name.starts_with("snapshot-")) && is_full
            };
            entries.filter(is_built).count()
        };
        (built("templates"), built("images"), built("ordered"))
    };
    until(
        "deleted templates are given back",
        patient(GIVEN_UP),
        || async {
            // That of the sandbox stays.
            let (templates, images, ordered) = left();
            (templates <= 1 && images == 0 && ordered == 0).then_some(())
        },
    )
    .await
    .with_context(|| format!("{:?}", left()))?;
    ensure!(output(client, sandbox, "cat step-9").await? == "first");
    client.hibernate_sandbox(sandbox).await?;
    ensure!(output(client, sandbox, "curl -s localhost:8000/step-9").await? == "first");
    client.delete_sandbox(sandbox).await?;
    Ok(())
}

/// What other builds do with links, names, owners and bits, checked by the last step as the user that
/// it names, which no file of the image knows.
const PLACED: &str = "FROM base AS other\nUSER root\n\
    RUN mkdir /out && echo new > /out/passwd && echo su > /out/su && chown 7:8 /out/su && chmod 4755 /out/su \
    && ln -s out /link\n\
    FROM base\nUSER root\n\
    RUN mkdir -p /srv/real /srv/old && ln -s real /srv/into && echo old > /srv/old/passwd && echo old > /srv/old/kept\n\
    COPY src/main.py /srv/into\n\
    COPY --from=other /out/passwd /srv/old/passwd.orig\n\
    COPY --from=other /link /srv/all\n\
    COPY --chown=agent --chmod=600 src/deep/data /srv/old/\n\
    RUN --mount=type=bind,source=src/main.py,target=/one/file test -f /one/file && ! touch /one/file\n\
    USER 4321:1000\nWORKDIR /srv/work/deep\n\
    RUN test \"$(id -u):$(id -g)\" = 4321:1000 && touch here && date +%N > stamp\n\
    CMD [\"true\"]\n";

#[tokio::test]
async fn files_owners_and_links_are_where_other_builds_put_them() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let context = tempfile::tempdir()?;
    write_context(context.path(), PLACED)?;
    build(&daemon, context.path(), &["--tag", "app"]).await?;
    let first = create(&client, "app").await?;
    let said = output(
        &client,
        &first,
        "cd /srv; id -u; test -L into && cat real/main.py; cat old/passwd old/kept old/passwd.orig; \
         stat -c %u:%g:%a:%n all/su old/data old/passwd work work/deep; \
         ! test -e /one && ! test -e all/out && echo gone",
    )
    .await?;
    let expected = "4321\nprint('hello')\nold\nold\nnew\n7:8:4755:all/su\n1000:1000:600:old/data\n\
        0:0:644:old/passwd\n4321:1000:755:work\n4321:1000:755:work/deep\ngone";
    ensure!(said == expected, "{said}");
    // Everything is done anew, and that is what builds find from then on.
    let stamp = output(&client, &first, "cat stamp").await?;
    client.delete_sandbox(&first).await?;
    for (more, is_known) in [(Some("--no-cache"), false), (None, true)] {
        let options = ["--tag", "app"].into_iter().chain(more);
        let again = build(&daemon, context.path(), &options.collect::<Vec<_>>()).await?;
        ensure!(told(&again, "started").is_empty() == is_known, "{again:#?}");
        let sandbox = create(&client, "app").await?;
        let other = output(&client, &sandbox, "cat stamp").await?;
        ensure!(other != stamp, "{more:?}: {other} as before");
        client.delete_sandbox(&sandbox).await?;
    }
    daemon.finish().await
}

/// Steps before the one that waits, which is the third.
const WAITS: &str = "FROM base\nRUN echo one > one\nRUN echo two > two\nRUN sleep 8; echo three > three\n\
    CMD [\"true\"]\n";

#[tokio::test]
async fn a_build_that_is_cut_off_goes_on_behind_what_it_kept() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let context = tempfile::tempdir()?;
    write_context(context.path(), WAITS)?;
    // The client: its builder has two minutes left at most.
    let mut cut = Build::start(&daemon, context.path(), &["--tag", "app"])?;
    let waiting = |events: &[Value]| told(events, "started").last() == Some(&3);
    loop {
        let events = tokio::time::timeout(patient(BUILT), cut.until("started")).await??;
        if waiting(&events) {
            break;
        }
    }
    cut.child.start_kill()?;
    cut.child.wait().await?;
    let left = client.list_sandboxes().await?;
    ensure!(left.len() == 1, "{left:#?}");
    let lifecycle = client.lifecycle(&left[0].id).await?;
    ensure!(lifecycle.ttl_seconds == Some(120), "{lifecycle:?}");
    client.delete_sandbox(&left[0].id).await?;
    // The control process and the node process, each while the step runs.
    for role in ["control", "node"] {
        write_context(
            context.path(),
            &WAITS.replace("three >", &format!("{role} >")),
        )?;
        let mut going = Build::start(&daemon, context.path(), &["--tag", "app"])?;
        let mut cached = Vec::new();
        loop {
            let events = tokio::time::timeout(patient(BUILT), going.until("started")).await??;
            cached.extend(told(&events, "cached"));
            if waiting(&events) {
                break;
            }
        }
        ensure!(cached == [1, 2], "{role}: {cached:?}");
        Daemon::kill(daemon.role_pid(role)?)?;
        going.finish().await?;
        let sandbox = create(&client, "app").await?;
        let said = output(&client, &sandbox, "cat one two three").await?;
        ensure!(said == format!("one\ntwo\n{role}"), "{said}");
        client.delete_sandbox(&sandbox).await?;
    }
    until(
        "no builder is left",
        patient(Duration::from_secs(150)),
        || async {
            let left = client.list_sandboxes().await.ok()?;
            left.is_empty().then_some(())
        },
    )
    .await?;
    daemon.finish().await
}

#[tokio::test]
async fn a_step_that_fails_says_what_and_can_be_looked_at() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let context = tempfile::tempdir()?;
    write_context(
        context.path(),
        "FROM base\nRUN echo left > left\nRUN echo because >&2; curl -s --max-time 5 http://other.example.com; exit 7\n",
    )?;
    let path = context.path().to_str().context("a path that is no text")?;
    let failed = daemon
        .dayfly(&[
            "template",
            "build",
            path,
            "--tag",
            "app",
            "--allow",
            "allowed.example.com",
        ])
        .await?;
    let said = String::from_utf8_lossy(&failed.stderr);
    ensure!(!failed.status.success(), "{said}");
    for part in [
        "step 2 of 2",
        "exit code 7",
        "line 3",
        "because",
        "template debug sb-",
    ] {
        ensure!(said.contains(part), "no {part:?} in {said}");
    }
    let left = client.list_sandboxes().await?;
    let builder = &left.first().context("no builder is left")?.id;
    ensure!(output(&client, builder, "cat left").await? == "left");
    // Its network is what was asked for, and nothing else.
    let network = client.network(builder).await?;
    let shown = serde_json::to_value(&network)?;
    ensure!(shown["mode"] == "allowlist", "{shown}");
    ensure!(shown.to_string().contains("allowed.example.com"), "{shown}");
    client.delete_sandbox(builder).await?;
    daemon.finish().await
}
