//! Commands that published examples give to a sandbox, as they are typed there, each in the template
//! that the example names. What would come from the internet comes from a mirror inside the guest.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use dayfly_api::{ExecRequest, ForkOptions, ForkSandbox, RunResult};
use dayfly_client::{Client, FileBody};
use dayfly_e2e::{
    Daemon, DaemonOptions, create, exec, figure, output_of_root, setting_or_skip, shell,
};

/// A large template that is not baked yet is baked under emulation, which takes minutes.
const READY_MAX: Duration = Duration::from_secs(1800);

/// A repository, a package that it requires, a patch that makes its tests pass, and the settings by
/// which git and pip take them for what the examples name.
const MIRROR: &str = r#"
set -e
sudo install -d -o agent /srv/mirror
mkdir -p /srv/mirror/wheels /tmp/repo
cd /tmp/repo
git init -q
git config user.email agent@example.com
git config user.name agent
printf 'tally==1.0\n' > requirements.txt
printf 'import tally\n\ndef test_sum():\n    assert tally.add(2, 2) == 5\n' > test_tally.py
git add .
git commit -q -m first
sed 's/== 5/== 4/' -i test_tally.py
git diff > /tmp/fix.patch
git checkout -q test_tally.py
mv /tmp/fix.patch .
git add fix.patch
git commit -q -m second
git clone -q --bare . /srv/mirror/repo
git config --global url.file:///srv/mirror/.insteadOf https://example.com/
python3 - <<'END'
import zipfile
with zipfile.ZipFile("/srv/mirror/wheels/tally-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tally.py", "def add(a, b):\n    return a + b\n")
    about = "tally-1.0.dist-info/"
    wheel.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: tally\nVersion: 1.0\n")
    wheel.writestr(about + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(about + "RECORD", "")
END
pip config --user set global.no-index true
pip config --user set global.find-links /srv/mirror/wheels
"#;

/// As an example types them, for the default user, in the default directory.
const TYPED: [&str; 6] = [
    "python --version",
    "python3 --version",
    "pytest --version",
    "git --version",
    "node --version",
    "npm --version",
];

/// Interpreters that start under emulation on a busy host.
const COMMAND_MAX_SECONDS: f64 = 300.0;

/// What a command prints. It must succeed.
async fn output(client: &Client, id: &str, text: &str) -> Result<String> {
    let request = ExecRequest {
        timeout_seconds: Some(COMMAND_MAX_SECONDS),
        ..shell(text)
    };
    let answer = client.exec(id, &request).await?;
    ensure!(answer.exit_code == 0, "{text}: {answer:?}");
    Ok(answer.stdout.trim_end().to_owned())
}

async fn daemon_with(setting: &dayfly_e2e::Setting, template: &str) -> Result<Daemon> {
    let daemon = Daemon::start(setting, DaemonOptions::default()).await?;
    daemon.wait_for_template(template, READY_MAX).await?;
    Ok(daemon)
}

/// Every tool answers as typed, and pip installs.
async fn tools_answer(client: &Client, id: &str) -> Result<()> {
    for typed in TYPED {
        let answer = exec(client, id, typed).await?;
        ensure!(answer.exit_code == 0, "{typed}: {answer:?}");
    }
    ensure!(output(client, id, "whoami; pwd").await? == "agent\n/workspace");
    output(client, id, MIRROR).await?;
    output(client, id, "pip install tally && python -c 'import tally'").await?;
    let script = "cd /tmp && mkdir -p app && cd app && npm init -y >/dev/null && node -e 'console.log(6 * 7)'";
    ensure!(output(client, id, script).await? == "42");
    Ok(())
}

async fn succeeded(what: &str, ran: RunResult) -> Result<String> {
    ensure!(ran.exit_code == 0, "{what}: {ran:?}");
    Ok(ran.stdout)
}

async fn fork(client: &Client, id: &str) -> Result<String> {
    let request = ForkSandbox {
        count: Some(1),
        options: ForkOptions::default(),
    };
    let forked = client.fork_sandbox(id, &request).await?;
    let child = forked.children.first().context("no child")?;
    Ok(child.id.clone())
}

#[tokio::test]
#[ignore = "soak: the Python SDK makes the same calls in the gate"]
async fn a_code_interpreter_does_as_the_examples_say() -> Result<()> {
    let setting = setting_or_skip!();
    let daemon = daemon_with(&setting, "code-interpreter").await?;
    let client = daemon.client()?;
    let id = create(&client, "code-interpreter").await?.id;
    client
        .write_file(
            &id,
            "/workspace/cell.py",
            FileBody::from_bytes("print(sum(range(101)))\n"),
        )
        .await?;
    ensure!(output(&client, &id, "python3 /workspace/cell.py").await? == "5050");
    let typed = "python -c 'import pandas; print(6 * 7)'";
    ensure!(succeeded(typed, client.run(&id, typed).await?).await? == "42\n");
    output(&client, &id, "git init -q /workspace").await?;
    let typed = "cd /workspace && git status";
    let told = succeeded(typed, client.run(&id, typed).await?).await?;
    ensure!(told.contains("cell.py"), "{told}");

    output(&client, &id, MIRROR).await?;
    for typed in [
        "git clone --depth 1 https://example.com/repo /workspace/repo",
        "cd /workspace/repo && pip install -r requirements.txt",
    ] {
        output(&client, &id, typed).await?;
    }
    let child = fork(&client, &id).await?;
    let tests = "cd /workspace/repo && pytest -q";
    output(&client, &child, "cd /workspace/repo && git apply fix.patch").await?;
    let passed = output(&client, &child, tests).await?;
    ensure!(passed.contains("1 passed"), "{passed}");
    let failed = exec(&client, &id, tests).await?;
    ensure!(failed.exit_code == 1, "the parent has no patch: {failed:?}");
    for id in [&child, &id] {
        client.delete_sandbox(id).await?;
    }
    daemon.finish().await
}

#[tokio::test]
#[ignore = "soak: the Python SDK makes the same calls in the gate"]
async fn python_data_keeps_a_frame_over_forks() -> Result<()> {
    let setting = setting_or_skip!();
    let daemon = daemon_with(&setting, "python-data").await?;
    let client = daemon.client()?;
    let id = create(&client, "python-data").await?.id;
    output_of_root(&client, &id, "printf 'a,b\\n1,2\\n,4\\n5,\\n' > /data.csv").await?;
    let typed = "import pandas; df = pandas.read_csv('/data.csv'); print(df.head())";
    let head = succeeded(typed, client.run(&id, typed).await?).await?;
    ensure!(head.contains("NaN"), "{head}");
    for approach in ["fillna", "dropna", "interpolate"] {
        let child = fork(&client, &id).await?;
        let typed = format!("df_{approach} = df.{approach}(); print(df_{approach}.describe())");
        let ran = client.run(&child, &typed).await?;
        if approach == "fillna" {
            // As typed there it lacks an argument, and pandas says so.
            let error = ran.error.clone().unwrap_or_default();
            ensure!(error.starts_with("ValueError"), "{ran:?}");
        } else {
            ensure!(succeeded(&typed, ran).await?.contains("mean"));
        }
        let others = client.run(&id, &format!("df_{approach}")).await?;
        ensure!(others.exit_code == 1, "the parent has it too: {others:?}");
        client.delete_sandbox(&child).await?;
    }
    client.delete_sandbox(&id).await?;
    daemon.finish().await
}

async fn tools_of(template: &str) -> Result<()> {
    let setting = setting_or_skip!();
    let daemon = daemon_with(&setting, template).await?;
    let client = daemon.client()?;
    let id = create(&client, template).await?.id;
    tools_answer(&client, &id).await?;
    figure!("{template}: every tool as typed");
    if template == "agent" {
        for typed in [
            "rg --version",
            "jq --version",
            "cc --version",
            "uv --version",
        ] {
            output(&client, &id, typed).await?;
        }
        for typed in ["claude --version", "codex --version"] {
            output(&client, &id, typed).await?;
        }
    }
    client.delete_sandbox(&id).await?;
    daemon.finish().await
}

#[tokio::test]
async fn the_tools_of_base_work_as_typed() -> Result<()> {
    tools_of("base").await
}

#[tokio::test]
#[ignore = "soak: the same disk as in the other tests here"]
async fn the_tools_of_a_code_interpreter_work_as_typed() -> Result<()> {
    tools_of("code-interpreter").await
}

#[tokio::test]
#[ignore = "soak: needs the template with the agents' command lines"]
async fn the_tools_of_agent_work_as_typed() -> Result<()> {
    tools_of("agent").await
}
