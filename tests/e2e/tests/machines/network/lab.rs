//! A daemon whose way out is the test's own internet.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSandbox, NetworkMode, NetworkWish, RuleWish};
use dayfly_client::{Client, FileBody, WriteOptions};
use dayfly_e2e::{Daemon, DaemonOptions, Setting, figure, until};
use dayfly_netlab::http_server::Seen;
use dayfly_netlab::internet::Arrivals;
use dayfly_netlab::{Internet, name_server};
use tempfile::TempDir;

use super::guest::Guest;

pub(crate) const TEMPLATE: &str = "base";
const LOG_LINES_SHOWN: usize = 40;
/// Where a guest has the attacker.
pub(crate) const ATTACKER: &str = "/tmp/attacker";

/// Dropped in this order: the daemon lets go of the namespace before it is taken down.
#[derive(Debug)]
pub(crate) struct Lab {
    account: Account,
    pub(crate) client: Client,
    pub(crate) daemon: Daemon,
    pub(crate) internet: Internet,
    attacker: Vec<u8>,
    _directory: TempDir,
}

impl Lab {
    pub(crate) async fn start(setting: &Setting) -> Result<Self> {
        Self::start_with(setting, &[]).await
    }

    pub(crate) async fn start_with(setting: &Setting, arguments: &[&str]) -> Result<Self> {
        let program = setting.programs.join("dayfly-attacker");
        let attacker = std::fs::read(program).context("no attacker; .ci/attacker builds it")?;
        let directory = tempfile::tempdir()?;
        let internet = Internet::make(&directory.path().canonicalize()?);
        let uplink = format!("netns:{}", internet.egress.display());
        let ours = [
            "--egress-uplink",
            &uplink,
            "--egress-resolver",
            name_server::ADDRESS,
        ];
        let options = DaemonOptions {
            arguments: ours.iter().chain(arguments).map(|&s| s.into()).collect(),
            ..DaemonOptions::default()
        };
        let (daemon, _) = Daemon::ready(setting, options).await?;
        Ok(Self {
            account: Account {
                log: daemon.path().join("daemon.log"),
                is_fine: false,
            },
            client: daemon.client()?,
            daemon,
            internet,
            attacker,
            _directory: directory,
        })
    }

    /// A sandbox with the attacker in it.
    pub(crate) async fn guest(&self, network: NetworkWish) -> Result<Guest<'_>> {
        self.guest_of(CreateSandbox {
            network: Some(network),
            ..CreateSandbox::default()
        })
        .await
    }

    pub(crate) async fn guest_of(&self, wish: CreateSandbox) -> Result<Guest<'_>> {
        let template = wish.template.clone().unwrap_or_else(|| TEMPLATE.to_owned());
        let wish = CreateSandbox {
            template: Some(template),
            ..wish
        };
        let id = self.client.create_sandbox(&wish).await?.id;
        let guest = Guest { lab: self, id };
        guest.wait_until_in_force().await?;
        let options = WriteOptions {
            mode: Some("0755".to_owned()),
            user: Some("root".to_owned()),
            ..WriteOptions::default()
        };
        let program = FileBody::from_bytes(self.attacker.clone());
        self.client
            .write_file_with(&guest.id, ATTACKER, program, &options)
            .await?;
        Ok(guest)
    }

    /// Nothing has come out of the cable since then: no connection, no question, no packet.
    pub(crate) fn ensure_nothing_left_since(&self, before: Arrivals) -> Result<()> {
        let now = self.internet.arrivals();
        ensure!(now == before, "it left: {before:?} has become {now:?}");
        Ok(())
    }

    /// What nobody may send, in the whole life of the lab.
    pub(crate) fn ensure_nothing_stray(&self) -> Result<()> {
        let Arrivals { never, stray, .. } = self.internet.arrivals();
        ensure!(
            (never, stray) == (0, 0),
            "{never} to nowhere, {stray} stray"
        );
        Ok(())
    }

    /// Ends everything, and looks at what was left behind.
    pub(crate) async fn finish(self) -> Result<()> {
        self.ensure_nothing_stray()?;
        self.end().await
    }

    /// The same where addresses inside were opened: who came there is for the test to say.
    pub(crate) async fn finish_after_visits_inside(self) -> Result<()> {
        let stray = self.internet.arrivals().stray;
        ensure!(stray == 0, "{stray} stray");
        self.end().await
    }

    async fn end(mut self) -> Result<()> {
        self.daemon.finish().await?;
        self.account.is_fine = true;
        Ok(())
    }
}

/// Shows what the daemon said, when a test fails.
#[derive(Debug)]
struct Account {
    log: PathBuf,
    is_fine: bool,
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.is_fine {
            return;
        }
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines.len().saturating_sub(LOG_LINES_SHOWN);
        figure!("{}", lines[last..].join("\n"));
    }
}

pub(crate) async fn until_came(what: &str, seen: &Arc<Seen>, text: &str) -> Result<()> {
    until(what, Duration::from_secs(20), || async {
        seen.text().contains(text).then_some(())
    })
    .await
    .with_context(|| format!("{:?} came instead", seen.text()))
}

pub(crate) fn deny() -> NetworkWish {
    wish(NetworkMode::Deny, &[])
}

pub(crate) fn public() -> NetworkWish {
    wish(NetworkMode::Public, &[])
}

pub(crate) fn allow(rules: &[&str]) -> NetworkWish {
    wish(NetworkMode::Allowlist, rules)
}

pub(crate) fn wish(mode: NetworkMode, rules: &[&str]) -> NetworkWish {
    NetworkWish {
        mode,
        rules: rules.iter().map(|rule| RuleWish::text(*rule)).collect(),
    }
}
