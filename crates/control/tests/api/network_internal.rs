//! Rules about internal networks, which the operator opens to projects.

use dayfly_types::egress::InternalNetworks;
use http::{Method, StatusCode};
use serde_json::json;

use crate::network::create;
use crate::support::{Setup, World};

/// A database of the project `default`, by address, and a mirror by name.
async fn world() -> World {
    let networks = json!([
        {"name": "database", "projects": ["default"], "ranges": ["10.30.0.0/24"],
            "ports": [5432]},
        {"name": "mirror", "projects": ["default"], "ranges": ["10.20.0.0/24"],
            "hosts": ["mirror.corp.example"], "ports": [443]}]);
    let internal_networks: InternalNetworks = serde_json::from_value(networks).unwrap();
    World::with(Setup {
        internal_networks,
        ..Setup::default()
    })
    .await
}

#[tokio::test]
async fn a_private_range_is_a_rule_only_where_the_operator_opened_it() {
    let world = world().await;
    let body = json!({"egress_allowlist": ["10.30.0.10:5432"]});
    let id = create(&world, body.clone()).await;
    let path = format!("/v1/sandboxes/{id}/network");
    let shown = world.get(&path).await.json();
    assert_eq!(shown["rules"][0]["cidr"], "10.30.0.10/32");
    let foreign = world.ask(&world.foreign_key, Method::POST, "/v1/sandboxes", body);
    let refused = foreign.await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(
        refused.text().contains("unless the operator"),
        "{}",
        refused.text()
    );
    for range in ["10.31.0.10", "10.20.0.10", "10.0.0.0/8", "169.254.169.254"] {
        let wish = json!({"mode": "allowlist", "rules": [format!("{range}:5432")]});
        let refused = world.put(&path, wish.clone()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{range}");
        let refused = world.put("/v1/network-default", wish).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{range}");
    }
    let more = json!({"rules": ["10.30.0.11:5432"]});
    let allowed = world.post(&format!("{path}/allow"), more).await;
    assert_eq!(allowed.status, StatusCode::OK, "{}", allowed.text());
}

#[tokio::test]
async fn a_fork_of_an_open_mode_gets_no_way_inside() {
    let world = world().await;
    let parent = create(&world, json!({"network": {"mode": "public"}})).await;
    let path = format!("/v1/sandboxes/{parent}/fork");
    for rule in ["mirror.corp.example", "10.30.0.10:5432"] {
        let refused = world.post(&path, json!({"egress_allowlist": [rule]})).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{rule}");
    }
    let forked = world
        .post(&path, json!({"egress_allowlist": ["pypi.org"]}))
        .await;
    assert_eq!(forked.status, StatusCode::CREATED, "{}", forked.text());
}
