//! From "everything" to a list, by what was used.

use anyhow::{Result, ensure};
use dayfly_api::{NetworkMode, NetworkRule, NetworkWish, RuleParts, RuleWish};
use dayfly_e2e::{figure, setting_or_skip};
use dayfly_netlab::internet::{ALLOWED, EVIL, OTHER};

use super::guest::{Guest, get, status};
use super::lab::{Lab, wish};

fn as_wish(rules: &[NetworkRule]) -> NetworkWish {
    let rules = rules.iter().map(|rule| {
        RuleWish::Rule(RuleParts {
            host: rule.host.clone(),
            cidr: rule.cidr.clone(),
            ports: Some(rule.ports.clone()),
            id: Some(rule.id.clone()),
        })
    });
    NetworkWish {
        mode: NetworkMode::Allowlist,
        rules: rules.collect(),
    }
}

/// The work of a sandbox: three services, one of them on a port of its own.
async fn work(guest: &Guest<'_>) -> Result<Vec<String>> {
    let probes = [
        get(&format!("{ALLOWED}:80"), "allowed.test", "/"),
        get(&format!("{ALLOWED}:80"), "www.allowed.test", "/"),
        get(&format!("{OTHER}:8080"), "other.test:8080", "/"),
    ];
    Ok(guest.probe(&probes).await?.iter().map(status).collect())
}

#[tokio::test]
async fn what_a_recorded_run_suggests_is_enough_and_one_entry_fewer_is_not() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    lab.internet.http(ALLOWED, 80, "allowed");
    lab.internet.http(OTHER, 8080, "other");
    let attacker = lab.internet.http(EVIL, 80, "evil");
    let guest = lab
        .guest(wish(NetworkMode::Observe, &["allowed.test"]))
        .await?;
    ensure!(work(&guest).await? == ["200", "200", "200"]);
    // Asked for and denied things are no part of it.
    guest.ask(&["evil.test"]).await?;
    guest
        .probe_one(get("169.254.169.254:80", "169.254.169.254", "/"))
        .await?;
    let marked = guest
        .record("what a list would deny", |r| {
            r.would_deny && r.kind == "http"
        })
        .await?;
    ensure!(marked.name.as_deref() != Some("allowed.test"), "{marked:?}");
    guest
        .record("the last connection", |r| {
            r.name.as_deref() == Some("other.test") && r.kind == "http"
        })
        .await?;
    let suggested = lab.client.suggest_network(&guest.id).await?;
    let mut hosts: Vec<_> = suggested
        .rules
        .iter()
        .filter_map(|r| r.host.clone())
        .collect();
    hosts.sort();
    figure!("suggested from {} records: {hosts:?}", suggested.records);
    ensure!(
        hosts == ["allowed.test", "other.test", "www.allowed.test"],
        "{suggested:?}"
    );
    guest.set(as_wish(&suggested.rules)).await?;
    ensure!(
        work(&guest).await? == ["200", "200", "200"],
        "the suggestion is enough"
    );
    let evil = guest
        .probe_one(get(&format!("{EVIL}:80"), "evil.test", "/"))
        .await?;
    ensure!(status(&evil) == "403");
    for left_out in 0..suggested.rules.len() {
        let mut fewer = suggested.rules.clone();
        let gone = fewer.remove(left_out);
        guest.set(as_wish(&fewer)).await?;
        let statuses = work(&guest).await?;
        let denied = statuses.iter().filter(|status| *status == "403").count();
        ensure!(denied == 1, "without {gone:?}: {statuses:?}");
    }
    attacker.assert_nothing_came();
    lab.finish().await
}
