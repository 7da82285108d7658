//! A sandbox that attacks.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{ExecRequest, ExecResult, NetworkRecord, NetworkWish};
use dayfly_attacker::probe::{Tcp, Udp};
use dayfly_attacker::{Bytes, Outcome, Probe, Report};
use dayfly_client::{FileBody, NetworkLogOptions, WriteOptions};
use dayfly_e2e::{exec_as_root, shell, until};
use dayfly_netlab::wire;
use hickory_proto::op::Message;
use hickory_proto::rr::RecordType;

use super::lab::{ATTACKER, Lab};

pub(crate) const GATEWAY: &str = "10.11.0.1";
/// A guest never has to wait this long.
pub(crate) const LIMIT_MS: u64 = 10_000;
const KEPT_BYTES: usize = 8 << 10;
/// Longer lists travel as a file.
const STDIN_BYTES_MAX: usize = 32 << 10;
const EXEC_SECONDS_MAX: f64 = 120.0;
const RECORD_MAX: Duration = Duration::from_secs(20);
const IN_FORCE_MAX: Duration = Duration::from_secs(20);
/// What is told at once takes a guest this long, emulated, on a host that is not busy.
pub(crate) const AT_ONCE_MAX: Duration = Duration::from_secs(1);
/// How often a guest tries what is to be told at once. Their median counts: any one may wait for a
/// busy host.
const AT_ONCE_TRIES: usize = 5;
const RECORDS_READ: u64 = 1000;

#[derive(Debug)]
pub(crate) struct Guest<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) id: String,
}

impl Guest<'_> {
    /// Lets the attacker try all of these, one after the other, as root.
    pub(crate) async fn probe(&self, probes: &[Probe]) -> Result<Vec<Report>> {
        let text = serde_json::to_string(probes)?;
        let mut request = ExecRequest {
            user: Some("root".to_owned()),
            timeout_seconds: Some(EXEC_SECONDS_MAX),
            ..shell(&format!("{ATTACKER} /dev/stdin"))
        };
        if text.len() > STDIN_BYTES_MAX {
            self.upload("/tmp/probes", text.into_bytes()).await?;
            request.cmd = shell(&format!("{ATTACKER} /tmp/probes")).cmd;
        } else {
            request.stdin = Some(text);
        }
        let ran = self.lab.client.exec(&self.id, &request).await?;
        ensure!(ran.exit_code == 0, "the attacker failed: {ran:?}");
        let reports: Vec<Report> = ran
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).context("no report"))
            .collect::<Result<_>>()?;
        ensure!(reports.len() == probes.len(), "reports are missing");
        Ok(reports)
    }

    pub(crate) async fn probe_one(&self, probe: Probe) -> Result<Report> {
        let mut reports = self.probe(&[probe]).await?;
        reports.pop().context("no report")
    }

    /// Tries all of these several times, which must end alike. The first reports, with the median
    /// time of each.
    pub(crate) async fn probe_at_once(&self, probes: &[Probe]) -> Result<Vec<Report>> {
        let mut first = self.probe(probes).await?;
        let mut times: Vec<Vec<_>> = first.iter().map(|report| vec![report.ms]).collect();
        for _ in 1..AT_ONCE_TRIES {
            let again = self.probe(probes).await?;
            for ((report, times), other) in first.iter().zip(&mut times).zip(again) {
                let is_same = report.outcome == other.outcome && report.count == other.count;
                ensure!(is_same, "{report:?} became {other:?}");
                times.push(other.ms);
            }
        }
        for (report, mut times) in first.iter_mut().zip(times) {
            times.sort_unstable();
            report.ms = times[AT_ONCE_TRIES / 2];
        }
        Ok(first)
    }

    pub(crate) async fn upload(&self, path: &str, bytes: Vec<u8>) -> Result<()> {
        let options = WriteOptions {
            user: Some("root".to_owned()),
            ..WriteOptions::default()
        };
        let body = FileBody::from_bytes(bytes);
        self.lab
            .client
            .write_file_with(&self.id, path, body, &options)
            .await?;
        Ok(())
    }

    pub(crate) async fn run(&self, text: &str) -> Result<ExecResult> {
        exec_as_root(&self.lab.client, &self.id, text).await
    }

    /// What a text printed; it must end well.
    pub(crate) async fn output(&self, text: &str) -> Result<String> {
        dayfly_e2e::output_of_root(&self.lab.client, &self.id, text).await
    }

    /// Changes the policy while the guest runs. It is in force when this returns.
    pub(crate) async fn set(&self, wish: NetworkWish) -> Result<()> {
        let now = self.lab.client.set_network(&self.id, &wish).await?;
        if !now.enforced {
            self.wait_until_in_force().await?;
        }
        Ok(())
    }

    /// A node that is slow to answer, or has just started, tells later.
    pub(crate) async fn wait_until_in_force(&self) -> Result<()> {
        until("the policy is in force", IN_FORCE_MAX, || async {
            let now = self.lab.client.network(&self.id).await.ok()?;
            now.enforced.then_some(())
        })
        .await
    }

    pub(crate) async fn records(&self) -> Result<Vec<NetworkRecord>> {
        let mut records = Vec::new();
        let mut after = 0;
        loop {
            let options = NetworkLogOptions {
                after,
                limit: Some(RECORDS_READ),
                wait_seconds: 0,
            };
            let page = self.lab.client.network_log(&self.id, options).await?;
            let Some(last) = page.records.last() else {
                return Ok(records);
            };
            after = last.sequence;
            records.extend(page.records);
        }
    }

    /// Waits for a record; they come a moment after what they tell of.
    pub(crate) async fn record(
        &self,
        what: &str,
        is_meant: impl Fn(&NetworkRecord) -> bool,
    ) -> Result<NetworkRecord> {
        let found = until(what, RECORD_MAX, || async {
            let records = self.records().await.ok()?;
            records.into_iter().find(|record| is_meant(record))
        });
        match found.await {
            Ok(record) => Ok(record),
            Err(error) => Err(error).context(format!("{:#?}", self.records().await?)),
        }
    }

    pub(crate) async fn denied(&self, reason: &str) -> Result<NetworkRecord> {
        let is_meant = |record: &NetworkRecord| {
            record.decision == "denied" && record.reason.as_deref() == Some(reason)
        };
        self.record(reason, is_meant).await
    }

    /// Asks the gateway for addresses by UDP, one name after the other.
    pub(crate) async fn ask(&self, names: &[&str]) -> Result<Vec<Message>> {
        let probes: Vec<Probe> = names
            .iter()
            .map(|name| question(GATEWAY, &wire::question_packet(name, RecordType::A)))
            .collect();
        self.probe(&probes).await?.iter().map(answer).collect()
    }
}

/// The message in a datagram that came back.
pub(crate) fn answer(report: &Report) -> Result<Message> {
    ensure!(report.outcome == Outcome::Reply, "no answer: {report:?}");
    Ok(Message::from_vec(&report.bytes.0)?)
}

pub(crate) fn question(server: &str, packet: &[u8]) -> Probe {
    udp(&format!("{server}:53"), packet)
}

/// Sends, and reads until the other side closes.
pub(crate) fn tcp(to: &str, bytes: &[u8]) -> Probe {
    Probe::Tcp(connection(to, bytes))
}

/// Sends, says that this was all, and reads until the other side closes.
pub(crate) fn say(to: &str, bytes: &[u8]) -> Probe {
    Probe::Tcp(Tcp {
        shut: true,
        ..connection(to, bytes)
    })
}

pub(crate) fn get(to: &str, host: &str, path: &str) -> Probe {
    say(to, &wire::get(host, path))
}

pub(crate) fn connection(to: &str, bytes: &[u8]) -> Tcp {
    let pieces = if bytes.is_empty() {
        Vec::new()
    } else {
        vec![Bytes::from(bytes)]
    };
    Tcp {
        to: place(to),
        pieces,
        pause_ms: 0,
        shut: false,
        limit_ms: LIMIT_MS,
        bytes_max: KEPT_BYTES,
        drain: false,
    }
}

pub(crate) fn udp(to: &str, bytes: &[u8]) -> Probe {
    Probe::Udp(Udp {
        to: place(to),
        send: Bytes::from(bytes),
        limit_ms: LIMIT_MS,
    })
}

pub(crate) fn place(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// The status of an HTTP answer.
pub(crate) fn status(report: &Report) -> String {
    let text = report.text();
    text.split(' ').nth(1).unwrap_or("nothing").to_owned()
}

/// The other side said this.
pub(crate) fn ensure_says(report: &Report, text: &str) -> Result<()> {
    ensure!(report.text().contains(text), "{}", report.text());
    Ok(())
}

/// It was there and then it was not, and nothing was said.
pub(crate) fn ensure_shut(what: &str, report: &Report) -> Result<()> {
    let is_over = matches!(
        report.outcome,
        Outcome::Connected | Outcome::Reset | Outcome::Refused | Outcome::Unreachable
    );
    ensure!(is_over && report.count == 0, "{what}: {report:?}");
    Ok(())
}
