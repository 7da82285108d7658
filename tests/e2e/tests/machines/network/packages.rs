//! What an agent installs, by an allowed name over TLS, and what it is told otherwise.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{ExecRequest, ExecResult};
use dayfly_e2e::{Setting, figure, patient, setting_or_skip, shell};
use dayfly_netlab::internet::OTHER;
use dayfly_netlab::wire::question_packet;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;

use super::guest::{AT_ONCE_MAX, GATEWAY, Guest, answer, question};
use super::lab::{Lab, allow};
use super::mirror;

/// Interpreters that start under emulation on a busy host.
const INSTALL_SECONDS_MAX: f64 = 180.0;
const GIVES_UP_MAX: Duration = Duration::from_secs(120);

struct Tool {
    name: &'static str,
    host: &'static str,
    command: &'static str,
    /// Words of a failure that says what is missing.
    told: [&'static str; 2],
    proof: &'static str,
}

const TOOLS: [Tool; 3] = [
    Tool {
        name: "pip",
        host: "pypi.test",
        command: "pip install --disable-pip-version-check --no-cache-dir --break-system-packages \
                  --retries 0 --index-url https://pypi.test/simple tally",
        told: [
            "NameResolutionError",
            "No matching distribution found for tally",
        ],
        proof: "python3 -c 'import tally; print(tally.add(2, 2))'",
    },
    Tool {
        name: "git",
        host: "git.test",
        command: "git clone -q https://git.test/repo /workspace/repo",
        told: ["Could not resolve host: git.test"; 2],
        proof: "test \"$(cat /workspace/repo/README)\" = 'from the mirror' && echo 4",
    },
    Tool {
        name: "npm",
        host: "npm.test",
        command: "mkdir -p /workspace/app && cd /workspace/app && \
                  npm install --no-audit --no-fund --fetch-retries=0 \
                  --registry=https://npm.test/ tally-js",
        told: ["getaddrinfo ENOTFOUND npm.test", "ENOTFOUND"],
        proof: "cd /workspace/app && node -e 'console.log(require(\"tally-js\")(2, 2))'",
    },
];

async fn install(guest: &Guest<'_>, text: &str) -> Result<ExecResult> {
    let trusted = ["PIP_CERT", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"];
    let env = trusted.map(|name| (name.to_owned(), "/workspace/mirror.pem".to_owned()));
    let request = ExecRequest {
        timeout_seconds: Some(INSTALL_SECONDS_MAX),
        env: Some(env.into_iter().collect()),
        ..shell(text)
    };
    Ok(guest.lab.client.exec(&guest.id, &request).await?)
}

/// Without leave, then with it.
async fn installs(setting: &Setting, tools: &[Tool]) -> Result<()> {
    let lab = Lab::start(setting).await?;
    let made = tempfile::tempdir()?;
    let served = lab.internet.site(OTHER, 443, mirror::site(made.path())?);
    let guest = lab.guest(allow(&["allowed.test"])).await?;
    guest
        .upload(
            "/workspace/mirror.pem",
            lab.internet.mirror.pem.clone().into(),
        )
        .await?;
    guest.output("chmod 0644 /workspace/mirror.pem").await?;
    for tool in tools {
        // What the tool waits for is told at once; the rest is its own start.
        let asked = question(GATEWAY, &question_packet(tool.host, RecordType::A));
        let told = guest.probe_at_once(&[asked]).await?.remove(0);
        ensure!(
            answer(&told)?.metadata.response_code == ResponseCode::NXDomain
                && told.time() < patient(AT_ONCE_MAX),
            "{told:?}"
        );
        let began = Instant::now();
        let refused = install(&guest, tool.command).await?;
        let took = began.elapsed();
        ensure!(refused.exit_code != 0, "{}: {refused:?}", tool.name);
        ensure!(took < patient(GIVES_UP_MAX), "{}: {took:?}", tool.name);
        let mut said = refused.stderr.lines();
        let told = said.find(|line| tool.told.iter().any(|words| line.contains(words)));
        let told = told.with_context(|| format!("{}: {refused:?}", tool.name))?;
        figure!("{} without leave failed after {took:?}: {told}", tool.name);
    }
    served.assert_nothing_came();
    ensure!(
        lab.internet.arrivals().questions == 0,
        "names were asked for"
    );
    let hosts: Vec<&str> = tools.iter().map(|tool| tool.host).collect();
    guest.set(allow(&hosts)).await?;
    for tool in tools {
        let began = Instant::now();
        let installed = install(&guest, tool.command).await?;
        ensure!(installed.exit_code == 0, "{}: {installed:?}", tool.name);
        let proof = install(&guest, tool.proof).await?;
        ensure!(proof.stdout.trim() == "4", "{}: {proof:?}", tool.name);
        figure!("{} installed after {:?}", tool.name, began.elapsed());
    }
    lab.finish().await
}

#[tokio::test]
async fn pip_and_git_install_by_an_allowed_name_and_fail_readably_otherwise() -> Result<()> {
    let setting = setting_or_skip!();
    installs(&setting, &TOOLS[..2]).await
}

#[tokio::test]
#[ignore = "soak: as pip and git, and takes three minutes under emulation"]
async fn npm_installs_by_an_allowed_name_and_fails_readably_otherwise() -> Result<()> {
    let setting = setting_or_skip!();
    installs(&setting, &TOOLS[2..]).await
}
