//! Plain HTTP: each request by itself, and never as the bytes in which it came.

use std::time::Duration;

use anyhow::{Result, ensure};
use dayfly_api::{CreateSandbox, ForkOptions, ForkSandbox, NetworkMode};
use dayfly_attacker::probe::Tcp;
use dayfly_attacker::{Bytes, Outcome, Probe};
use dayfly_e2e::{refusal, setting_or_skip, until};
use dayfly_netlab::internet::{ALLOWED, EVIL, OTHER};

use super::guest::{Guest, connection, get, say, status};
use super::lab::{Lab, allow, deny, public};

fn to(address: &str) -> String {
    format!("{address}:80")
}

/// The statuses of all answers of one connection.
fn statuses(text: &str) -> Vec<&str> {
    text.split("HTTP/1.1 ")
        .skip(1)
        .filter_map(|part| part.split(' ').next())
        .collect()
}

async fn d5(guest: &Guest<'_>) -> Result<()> {
    let turns = [
        ("allowed.test", "200"),
        ("evil.test", "403"),
        ("allowed.test", "200"),
        ("other.test", "200"),
        ("evil.test", "403"),
    ];
    let ask = |host: &str| format!("GET /d5 HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let expected: Vec<&str> = turns.iter().map(|(_, status)| *status).collect();
    let requests = turns.map(|(host, _)| ask(host));
    let ahead = say(&to(EVIL), requests.concat().as_bytes());
    let one_by_one = Probe::Tcp(Tcp {
        pieces: requests
            .iter()
            .map(|text| Bytes::from(text.as_bytes()))
            .collect(),
        pause_ms: 300,
        shut: true,
        ..connection(&to(EVIL), b"")
    });
    for report in guest.probe(&[ahead, one_by_one]).await? {
        let text = report.text();
        ensure!(statuses(&text) == expected, "{text}");
    }
    Ok(())
}

async fn d7(guest: &Guest<'_>) -> Result<()> {
    let hidden = "GET /hidden HTTP/1.1\r\nHost: allowed.test\r\n\r\n";
    let length = hidden.len() + 5;
    let fields = [
        format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n"),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n".to_owned(),
        "Transfer-Encoding: xchunked\r\n".to_owned(),
        "Transfer-Encoding : chunked\r\n".to_owned(),
        "X: y\r\n folded: z\r\n".to_owned(),
        "Content-Length: 5\r\nContent-Length: 6\r\n".to_owned(),
        "X: a\rTransfer-Encoding: chunked\r\n".to_owned(),
        "X: a\nTransfer-Encoding: chunked\r\n".to_owned(),
        "Host: evil.test\r\n".to_owned(),
    ];
    let probes: Vec<Probe> = fields
        .iter()
        .map(|fields| {
            format!("POST / HTTP/1.1\r\nHost: allowed.test\r\n{fields}\r\n0\r\n\r\n{hidden}")
        })
        .map(|request| say(&to(ALLOWED), request.as_bytes()))
        .collect();
    for (fields, report) in fields.iter().zip(guest.probe(&probes).await?) {
        let text = report.text();
        ensure!(statuses(&text) == ["400"], "{fields:?}: {text}");
    }
    Ok(())
}

async fn d8(guest: &Guest<'_>) -> Result<()> {
    let requests = [
        "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
        "CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test:80\r\n\r\n",
        "GET http://evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET http://allowed.test@evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET https://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: allowed.test\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ];
    let probes: Vec<Probe> = requests
        .iter()
        .map(|request| say(&to(ALLOWED), request.as_bytes()))
        .collect();
    for (request, report) in requests.iter().zip(guest.probe(&probes).await?) {
        ensure!(status(&report) == "400", "{request:?}: {}", report.text());
    }
    Ok(())
}

async fn d14(guest: &Guest<'_>) -> Result<()> {
    let canaries = guest.lab.internet.canaries();
    let command = "curl -sS --max-time 20 -L -w '%{http_code}' http://allowed.test/redirect";
    let said = guest.output(command).await?;
    ensure!(
        said.contains("never_address") && said.ends_with("403"),
        "{said}"
    );
    for canary in &canaries {
        canary.assert_nothing_came();
    }
    Ok(())
}

#[tokio::test]
async fn d5_d7_d8_d14_each_request_is_decided_by_itself() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let guest = lab.guest(allow(&["allowed.test", "other.test"])).await?;
    let allowed = lab.internet.http(ALLOWED, 80, "allowed");
    let other = lab.internet.http(OTHER, 80, "other");
    let attacker = lab.internet.http(EVIL, 80, "evil");
    d7(&guest).await?;
    d8(&guest).await?;
    allowed.assert_nothing_came();
    d5(&guest).await?;
    ensure!(
        (allowed.requests(), other.requests()) == (4, 2),
        "{}",
        allowed.text()
    );
    d14(&guest).await?;
    attacker.assert_nothing_came();
    // A well-formed body goes on as one well-formed request, and nothing behind it does.
    let chunked = "POST /up HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\
                   Transfer-Encoding: chunked\r\n\r\n5;name=value\r\nhello\r\n0\r\n\r\n\
                   GET /hidden HTTP/1.1\r\nHost: allowed.test\r\n\r\n";
    let report = guest
        .probe_one(say(&to(ALLOWED), chunked.as_bytes()))
        .await?;
    ensure!(
        report.text().contains("hello from allowed at /up"),
        "{}",
        report.text()
    );
    let seen = allowed.text();
    ensure!(
        !seen.contains("name=value") && !seen.contains("/hidden"),
        "{seen}"
    );
    lab.finish().await
}

#[tokio::test]
async fn d9_a_websocket_is_a_tunnel_until_the_policy_says_no() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let allowed = lab.internet.http(ALLOWED, 80, "allowed");
    let guest = lab.guest(allow(&["allowed.test"])).await?;
    let upgrade = "GET /ws HTTP/1.1\r\nHost: allowed.test\r\nConnection: keep-alive, Upgrade\r\n\
                   Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n";
    let tunnel = [Probe::Tcp(Tcp {
        pieces: vec![
            Bytes::from(upgrade.as_bytes()),
            Bytes::from(&b"echo this"[..]),
        ],
        pause_ms: 1000,
        limit_ms: 60_000,
        ..connection(&to(ALLOWED), b"")
    })];
    let tighten = async {
        until("it is a tunnel", Duration::from_secs(30), || async {
            allowed.text().ends_with("echo this").then_some(())
        })
        .await?;
        guest.set(allow(&["other.test"])).await
    };
    let (report, tightened) = tokio::join!(guest.probe(&tunnel), tighten);
    tightened?;
    let report = report?.remove(0);
    ensure!(report.outcome == Outcome::Reset, "{report:?}");
    let text = report.text();
    ensure!(
        text.starts_with("HTTP/1.1 101 ") && text.ends_with("echo this"),
        "{text}"
    );
    guest
        .record("the cut", |record| record.decision == "cut")
        .await?;
    guest.set(allow(&["allowed.test"])).await?;
    let request = "GET /h2c HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade, HTTP2-Settings\r\n\
                   Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n\r\n";
    let report = guest
        .probe_one(say(&to(ALLOWED), request.as_bytes()))
        .await?;
    ensure!(
        report.text().contains("hello from allowed at /h2c"),
        "{}",
        report.text()
    );
    let seen = allowed.text().to_ascii_lowercase();
    ensure!(
        !seen.contains("h2c\r\n") && !seen.contains("http2-settings"),
        "{seen}"
    );
    lab.finish().await
}

/// Nothing gets through; the same probe does where it may.
async fn ensure_denied(guest: &Guest<'_>, when: &str) -> Result<()> {
    let before = guest.lab.internet.arrivals();
    let report = guest.probe_one(get(&to(EVIL), "evil.test", "/")).await?;
    ensure!(status(&report) == "403", "{when}: {}", report.text());
    ensure!(
        guest.ask(&["evil.test"]).await?[0].answers.is_empty(),
        "{when}"
    );
    guest.lab.ensure_nothing_left_since(before)
}

#[tokio::test]
async fn d11_an_empty_list_lets_nothing_through_at_any_time() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    lab.internet.http(EVIL, 80, "evil");
    let empty = CreateSandbox {
        egress_allowlist: Some(Vec::new()),
        ..CreateSandbox::default()
    };
    let guest = lab.guest_of(empty).await?;
    ensure_denied(&guest, "created with []").await?;
    guest.set(public()).await?;
    let report = guest.probe_one(get(&to(EVIL), "evil.test", "/")).await?;
    ensure!(
        report.text().contains("hello from evil"),
        "the probe works: {}",
        report.text()
    );
    guest.set(allow(&[])).await?;
    ensure_denied(&guest, "updated to []").await?;
    lab.client.pause_sandbox(&guest.id).await?;
    lab.client.resume_sandbox(&guest.id).await?;
    ensure_denied(&guest, "resumed").await?;
    let request = ForkSandbox {
        count: Some(1),
        options: ForkOptions::default(),
    };
    let forked = lab.client.fork_sandbox(&guest.id, &request).await?;
    let child = Guest {
        lab: &lab,
        id: forked.children[0].id.clone(),
    };
    ensure_denied(&child, "forked").await?;
    ensure_defaults(&lab).await?;
    lab.finish().await
}

/// Absent is what the project says; null is nothing that can be said.
async fn ensure_defaults(lab: &Lab) -> Result<()> {
    lab.client
        .set_network_default(&allow(&["evil.test"]))
        .await?;
    let by_default = lab.guest_of(CreateSandbox::default()).await?;
    let report = by_default
        .probe_one(get(&to(EVIL), "evil.test", "/"))
        .await?;
    ensure!(
        report.text().contains("hello from evil"),
        "{}",
        report.text()
    );
    lab.client.set_network_default(&deny()).await?;
    ensure!(lab.client.network(&by_default.id).await?.mode == NetworkMode::Allowlist);
    let url = format!("{}/v1/sandboxes", lab.daemon.url());
    let key = lab.daemon.key()?;
    let said = tokio::process::Command::new("curl")
        .args([
            "-sS",
            "-X",
            "POST",
            "-H",
            &format!("authorization: Bearer {key}"),
        ])
        .args([
            "-H",
            "content-type: application/json",
            "-d",
            r#"{"egress_allowlist":null}"#,
            &url,
        ])
        .output()
        .await?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    ensure!(said.contains("must not be null"), "{said}");
    let both = CreateSandbox {
        network: Some(public()),
        egress_allowlist: Some(Vec::new()),
        ..CreateSandbox::default()
    };
    refusal(lab.client.create_sandbox(&both).await, "invalid_request")?;
    Ok(())
}
