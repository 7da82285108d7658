//! What a sandbox may reach: how it is asked for, shown and handed down.

use dayfly_types::egress::{EgressMode, EgressPolicy};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::World;

pub(crate) async fn create(world: &World, body: Value) -> String {
    let made = world.post("/v1/sandboxes", body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    made.json()["id"].as_str().unwrap().to_owned()
}

pub(crate) fn policy(json: Value) -> EgressPolicy {
    serde_json::from_value(json).unwrap()
}

fn list(hosts: &[&str]) -> Value {
    let rule = |host: &&str| json!({"id": host, "host": host, "ports": [80, 443]});
    let rules: Vec<Value> = hosts.iter().map(rule).collect();
    json!({"mode": "allowlist", "rules": rules})
}

#[tokio::test]
async fn a_sandbox_reaches_nothing_unless_somebody_says_so() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    let wanted = world.node.last_wanted().unwrap();
    assert_eq!(
        (wanted.egress, wanted.egress_epoch),
        (EgressPolicy::deny(), 1)
    );
    let shown = world.get(&format!("/v1/sandboxes/{id}/network")).await;
    assert_eq!(
        shown.json(),
        json!({"mode": "deny", "rules": [], "epoch": 1, "enforced": true})
    );
    let sandbox = world.get(&format!("/v1/sandboxes/{id}")).await.json();
    assert_eq!(sandbox["network_mode"], "deny");
}

#[tokio::test]
async fn both_forms_of_a_create_reach_the_node() {
    let world = World::start().await;
    let wanted = policy(list(&["pypi.org", "*.example.com"]));
    for body in [
        json!({"egress_allowlist": ["PyPI.org", "*.example.com"]}),
        json!({"network": {"mode": "allowlist", "rules": ["pypi.org", {"host": "*.example.com"}]}}),
    ] {
        create(&world, body).await;
        assert_eq!(world.node.last_wanted().unwrap().egress, wanted);
    }
    let body = json!({"network": {"mode": "allowlist", "rules": [
        {"cidr": "93.184.216.0/24", "ports": [22], "id": "ssh"}, "preset:llm-apis"]}});
    let id = create(&world, body).await;
    let shown = world.get(&format!("/v1/sandboxes/{id}/network")).await;
    let rules = shown.json()["rules"].clone();
    assert_eq!(
        rules[0],
        json!({"id": "ssh", "cidr": "93.184.216.0/24", "ports": [22]})
    );
    assert_eq!(
        rules[1],
        json!({"id": "llm-apis/api.anthropic.com", "host": "api.anthropic.com", "ports": [443]})
    );
    for (body, mode) in [
        (
            json!({"egress_allowlist": ["preset:public"]}),
            EgressMode::Public,
        ),
        (json!({"network": {"mode": "public"}}), EgressMode::Public),
        (
            json!({"network": {"mode": "observe", "rules": ["a.test"]}}),
            EgressMode::Observe,
        ),
        // An empty list is a list of nothing.
        (json!({"egress_allowlist": []}), EgressMode::Allowlist),
    ] {
        create(&world, body).await;
        let wanted = world.node.last_wanted().unwrap().egress;
        assert_eq!(wanted.mode(), mode);
        assert!(mode == EgressMode::Observe || wanted.rules().is_empty());
    }
}

/// Checks that a create is refused with a text that has these parts.
async fn refuses(world: &World, body: Value, parts: [&str; 2]) {
    let refused = world.post("/v1/sandboxes", body.clone()).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}");
    assert_eq!(refused.refusal(), "invalid_request");
    let text = refused.json()["error"].as_str().unwrap().to_owned();
    for part in parts {
        assert!(text.contains(part), "{body}: {text}");
    }
    assert!(world.node.ids().is_empty());
}

#[tokio::test]
async fn a_policy_that_cannot_be_meant_is_refused() {
    let world = World::start().await;
    let null = ["must not be null", "leave the field out"];
    let both = ["exclude each other", "leave one of them out"];
    let closed = json!({"mode": "deny", "rules": ["a.test"]});
    for (body, parts) in [
        (json!({"egress_allowlist": null}), null),
        (json!({"network": null}), null),
        (
            json!({"network": {"mode": "deny"}, "egress_allowlist": []}),
            both,
        ),
        (json!({"network": {"rules": []}}), ["mode", "missing"]),
        (
            json!({"network": {"mode": "open"}}),
            ["open", "expected one of"],
        ),
        (json!({"network": closed}), ["mean nothing", "mode deny"]),
        (
            json!({"network": {"mode": "deny", "allow": []}}),
            ["unknown field", "allow"],
        ),
        (
            json!({"egress_allowlist": "pypi.org"}),
            ["invalid type", "sequence"],
        ),
    ] {
        refuses(&world, body, parts).await;
    }
}

#[tokio::test]
async fn a_rule_that_cannot_be_meant_is_refused_with_what_why_and_what_to_do() {
    let world = World::start().await;
    for (rules, parts) in [
        (json!(["*"]), ["everything", "use mode public"]),
        (json!(["*.com"]), ["entry 1", "at least two parts"]),
        (json!(["*.co.uk"]), ["public suffix", "name the hosts"]),
        (
            json!(["10.0.0.0/8"]),
            ["no sandbox may reach", "whatever its rules say"],
        ),
        (
            json!(["0.0.0.0/0"]),
            ["no sandbox may reach", "smaller range"],
        ),
        (
            json!(["a.test", "http://b.test/"]),
            ["entry 2", "such as b.test"],
        ),
        (
            json!(["preset:npm"]),
            ["there is not", "package-registries"],
        ),
        (
            json!(["preset:public", "a.test"]),
            ["entry 1", "use mode public"],
        ),
    ] {
        refuses(&world, json!({"egress_allowlist": rules}), parts).await;
        let network = json!({"mode": "allowlist", "rules": rules});
        refuses(&world, json!({"network": network}), parts).await;
    }
}

#[tokio::test]
async fn a_project_has_a_default_of_its_own() {
    let world = World::start().await;
    let path = "/v1/network-default";
    let shipped = json!({"mode": "deny", "rules": []});
    assert_eq!(world.get(path).await.json(), shipped);
    let before = create(&world, json!({})).await;
    let body = json!({"mode": "allowlist", "rules": ["pypi.org"]});
    let set = world.put(path, body).await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.text());
    assert_eq!(set.json(), list(&["pypi.org"]));
    assert_eq!(world.get(path).await.json(), list(&["pypi.org"]));
    create(&world, json!({})).await;
    let wanted = world.node.last_wanted().unwrap().egress;
    assert_eq!(wanted, policy(list(&["pypi.org"])));
    // A request that says something is not mixed with it, and older sandboxes stay.
    create(&world, json!({"egress_allowlist": []})).await;
    assert!(world.node.last_wanted().unwrap().egress.rules().is_empty());
    assert_eq!(world.node.network_of(&before).0, EgressPolicy::deny());
    // Another project has its own.
    let foreign = world
        .ask(&world.foreign_key, Method::GET, path, json!({}))
        .await;
    assert_eq!(foreign.json(), shipped);
    for body in [
        json!({}),
        json!({"mode": "allowlist", "rules": ["*.co.uk"]}),
    ] {
        assert_eq!(world.put(path, body).await.refusal(), "invalid_request");
    }
    assert_eq!(world.get(path).await.json(), list(&["pypi.org"]));
    let set = world.put(path, json!({"mode": "deny"})).await;
    assert_eq!(set.json(), shipped);
}

#[tokio::test]
async fn a_sandbox_from_a_snapshot_has_the_request_s_or_the_default_s_policy() {
    let world = World::start().await;
    let id = create(&world, json!({"network": {"mode": "public"}})).await;
    let taken = world
        .post(&format!("/v1/sandboxes/{id}/snapshots"), json!({}))
        .await;
    let snapshot = taken.json()["id"].clone();
    create(&world, json!({"from_snapshot": snapshot})).await;
    assert_eq!(
        world.node.last_wanted().unwrap().egress,
        EgressPolicy::deny()
    );
    create(
        &world,
        json!({"from_snapshot": snapshot, "egress_allowlist": ["a.test"]}),
    )
    .await;
    let wanted = world.node.last_wanted().unwrap().egress;
    assert_eq!(wanted, policy(list(&["a.test"])));
    // Going back in time does not bring an old policy back.
    let path = format!("/v1/sandboxes/{id}/network");
    world.put(&path, json!({"mode": "deny"})).await;
    let rolled = world
        .post(
            &format!("/v1/sandboxes/{id}/rollback"),
            json!({"snapshot_id": snapshot}),
        )
        .await;
    assert_eq!(rolled.status, StatusCode::OK, "{}", rolled.text());
    assert_eq!(world.get(&path).await.json()["mode"], "deny");
    assert_eq!(world.node.network_of(&id).0, EgressPolicy::deny());
}

#[tokio::test]
async fn a_child_reaches_what_its_source_does_or_less() {
    let world = World::start().await;
    let body = json!({"egress_allowlist": ["**.example.com", "93.184.0.0/16:22"]});
    let parent = create(&world, body).await;
    world
        .post(
            &format!("/v1/sandboxes/{parent}/network/allow"),
            json!({"rules": ["a.test"]}),
        )
        .await;
    let path = format!("/v1/sandboxes/{parent}/fork");
    let forked = world.post(&path, json!({"count": 2})).await;
    assert_eq!(forked.status, StatusCode::CREATED, "{}", forked.text());
    let request = world.node.forks().pop().unwrap();
    for child in &request.children {
        assert_eq!(child.egress, world.node.network_of(&parent).0);
        // A life of its own begins.
        assert_eq!(child.egress_epoch, 1);
    }
    for body in [
        json!({"egress_allowlist": ["b.example.com"]}),
        json!({"egress_allowlist": []}),
        json!({"network": {"mode": "deny"}}),
        json!({"network": {"mode": "allowlist", "rules": ["93.184.216.0/24:22"]}}),
    ] {
        let forked = world.post(&path, body.clone()).await;
        assert_eq!(
            forked.status,
            StatusCode::CREATED,
            "{body}: {}",
            forked.text()
        );
    }
    for body in [
        json!({"network": {"mode": "public"}}),
        json!({"network": {"mode": "observe"}}),
        json!({"egress_allowlist": ["example.com"]}),
        json!({"egress_allowlist": ["a.test:8080"]}),
        json!({"egress_allowlist": ["93.0.0.0/8:22"]}),
        json!({"egress_allowlist": ["preset:git-hosts"]}),
    ] {
        let refused = world.post(&path, body.clone()).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{body}");
        assert_eq!(refused.refusal(), "forbidden");
        let error = refused.json()["error"].clone();
        assert_eq!(error, "a child may not reach more than its source");
        assert!(refused.json()["hint"].is_string());
    }
    let both = json!({"network": {"mode": "deny"}, "egress_allowlist": []});
    assert_eq!(world.post(&path, both).await.refusal(), "invalid_request");
    let null = world.post(&path, json!({"egress_allowlist": null})).await;
    assert_eq!(null.refusal(), "invalid_request");
    assert_eq!(world.node.ids().len(), 7);
}

#[tokio::test]
async fn presets_are_listed_and_used_by_name() {
    let world = World::start().await;
    let presets = world.get("/v1/network-presets").await.json();
    let names: Vec<&str> = presets["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|preset| preset["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "package-registries",
            "container-registries",
            "git-hosts",
            "llm-apis",
            "public"
        ]
    );
    assert_eq!(presets["items"][4]["mode"], "public");
    for name in names {
        create(
            &world,
            json!({"egress_allowlist": [format!("preset:{name}")]}),
        )
        .await;
    }
}

#[tokio::test]
async fn another_project_s_network_is_not_there() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    let base = format!("/v1/sandboxes/{id}/network");
    let deny = json!({"mode": "deny"});
    for (method, path, body) in [
        (Method::GET, base.clone(), json!({})),
        (Method::PUT, base.clone(), deny),
        (
            Method::POST,
            format!("{base}/allow"),
            json!({"rules": ["a.test"]}),
        ),
        (Method::GET, format!("{base}/log"), json!({})),
        (Method::GET, format!("{base}/suggest"), json!({})),
    ] {
        let answer = world.ask(&world.foreign_key, method, &path, body).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert!(world.node.network_calls().is_empty());
}
