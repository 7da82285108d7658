//! Names that nobody knows are refused wherever something changes, and what published clients send
//! is not.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::sign_in::world_where_people_sign_in;
use crate::support::World;

/// Every operation that is no read: its method, path and description.
fn changes() -> Vec<(Method, String, Value)> {
    let document = serde_json::to_value(dayfly_control::openapi()).unwrap();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            if !matches!(method, Method::GET | Method::HEAD) {
                found.push((method, path.clone(), operation.clone()));
            }
        }
    }
    found
}

/// A path with things in it that exist, as far as that matters.
fn filled(path: &str, sandbox: &str) -> String {
    let sandbox_path = path.replace("/v1/sandboxes/{id}", &format!("/v1/sandboxes/{sandbox}"));
    let filled = sandbox_path
        .replace("{id}", "snap-local-absent")
        .replace("{project}", "default")
        .replace("{port}", "8080")
        .replace("{prefix}", "dfk_absent")
        .replace("{link}", "absent")
        .replace("{exec_id}", "absent")
        .replace("{sid}", "absent")
        .replace("{tag}", "absent")
        .replace("{version}", "tv-0")
        .replace("{name}", "absent");
    assert!(!filled.contains('{'), "{filled}");
    filled
}

#[tokio::test]
async fn every_body_with_an_unknown_field_is_refused() {
    let world = world_where_people_sign_in().await;
    let sandbox = world.create().await;
    let calls = world.node.ensure_calls();
    let mut asked = 0;
    for (method, path, operation) in changes() {
        if operation["requestBody"]["content"]["application/json"].is_null() {
            continue;
        }
        let mut body = json!({"frobnicate": 1});
        if path.ends_with("/fork-tree") {
            body["count"] = json!(1);
        }
        let answer = world
            .ask(&world.key, method.clone(), &filled(&path, &sandbox), body)
            .await;
        assert_eq!(answer.refusal(), "invalid_request", "{method} {path}");
        let text = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(
            text.contains("unknown field `frobnicate`"),
            "{method} {path}: {text}"
        );
        assert!(answer.json()["hint"].is_string(), "{method} {path}");
        asked += 1;
    }
    assert!(asked >= 24, "only {asked} operations have a body");
    assert_eq!(world.node.ensure_calls(), calls, "nothing was made");
}

#[tokio::test]
async fn every_change_with_an_unknown_parameter_is_refused() {
    let world = world_where_people_sign_in().await;
    let sandbox = world.create().await;
    let mut asked = 0;
    for (method, path, _) in changes() {
        let path = format!("{}?frobnicate=1", filled(&path, &sandbox));
        let answer = world
            .ask(&world.key, method.clone(), &path, json!({}))
            .await;
        assert_eq!(answer.refusal(), "invalid_request", "{method} {path}");
        let text = answer.text();
        assert!(
            text.contains("unknown parameter `frobnicate`"),
            "{method} {path}: {text}"
        );
        asked += 1;
    }
    assert!(asked >= 45, "only {asked} operations change something");
    let there = world
        .get(&format!("/v1/sandboxes/{sandbox}?frobnicate=1"))
        .await;
    assert_eq!(
        there.status,
        StatusCode::OK,
        "it was not deleted, and a read may ask anything"
    );
}

#[tokio::test]
async fn a_misspelt_restriction_makes_no_sandbox() {
    let world = World::start().await;
    let open = world
        .put("/v1/network-default", json!({"mode": "public"}))
        .await;
    assert_eq!(open.status, StatusCode::OK, "{}", open.text());
    for (body, near) in [
        (json!({"newtork": {"mode": "deny"}}), "network"),
        (json!({"egress_allow_list": []}), "egress_allowlist"),
        (
            json!({"volumes": [{"name": "a", "readonly": true}]}),
            "read_only",
        ),
        (json!({"network": {"mode": "deny", "rule": []}}), "rules"),
    ] {
        let refused = world.post("/v1/sandboxes", body.clone()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}");
        let wanted = format!("did you mean `{near}`?");
        assert!(refused.text().contains(&wanted), "{}", refused.text());
    }
    assert_eq!(world.node.ensure_calls(), 0);
    let closed = world
        .post("/v1/sandboxes", json!({"network": {"mode": "deny"}}))
        .await;
    assert_eq!(closed.json()["network_mode"], "deny");
}

/// What `pandastack` 0.10.0 for Python and `@pandastack/sdk` 0.9.0 for TypeScript send, nulls
/// included. `docs/api.md` has the same list.
#[tokio::test]
async fn what_published_clients_send_is_known() {
    let world = World::start().await;
    let volume = json!({"name": "data", "size_mb": 64});
    assert_eq!(
        world.post("/v1/volumes", volume).await.status,
        StatusCode::CREATED
    );
    let create = json!({"template": "base", "metadata": {"a": "b"}, "ttl_seconds": 60,
        "persistent": true, "from_snapshot": null,
        "volumes": [{"name": "data", "read_only": true}]});
    let made = world.post("/v1/sandboxes", create).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let nulls = json!({"template": "base", "metadata": null, "ttl_seconds": null,
        "persistent": null, "from_snapshot": null});
    assert_eq!(
        world.post("/v1/sandboxes", nulls).await.status,
        StatusCode::CREATED
    );
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let of = |rest: &str| format!("/v1/sandboxes/{id}/{rest}");
    for (method, path, body) in [
        (
            Method::POST,
            of("exec"),
            json!({"cmd": "true", "timeout_seconds": 1.5}),
        ),
        (
            Method::POST,
            of("exec/stream"),
            json!({"cmd": "true", "timeout_seconds": 5}),
        ),
        (
            Method::POST,
            of("repl/sessions"),
            json!({"language": "python"}),
        ),
        (
            Method::POST,
            of("repl/sessions/ctx-a/run"),
            json!({"code": "1", "timeout_ms": 1000}),
        ),
        (Method::PATCH, of("lifecycle"), json!({"ttl_seconds": 60})),
        (Method::PATCH, of("lifecycle"), json!({"persistent": false})),
        (Method::POST, of("fork"), json!({"metadata": {}})),
        (
            Method::POST,
            of("fork-tree"),
            json!({"count": 2, "metadata": {"explore": "1"}}),
        ),
        (
            Method::POST,
            of("promote"),
            json!({"cleanup_siblings": false, "tree_id": ""}),
        ),
        (
            Method::POST,
            "/v1/me/tokens".to_owned(),
            json!({"label": "a", "expires_in_days": 3}),
        ),
        (Method::POST, "/v1/me/tokens".to_owned(), json!({})),
    ] {
        let answer = world.ask(&world.key, method, &path, body.clone()).await;
        let text = answer.text().to_owned();
        assert!(!text.contains("unknown field"), "{path} {body}: {text}");
        assert_ne!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{path} {body}: {text}"
        );
    }
}
