//! I1: what is another project's looks like what does not exist, for every operation of the
//! document; and a key without the scope learns nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, Setup, World};

const ABSENT_SANDBOX: &str = "sb-local-absent";

/// One documented operation.
pub(crate) struct Operation {
    pub(crate) id: String,
    method: Method,
    path: String,
    body: Value,
}

/// Names to put in the place of parameters.
pub(crate) struct Names {
    sandbox: String,
    snapshot: String,
    volume: String,
    token: String,
    link: String,
}

pub(crate) fn names(kind: &str) -> Names {
    Names {
        sandbox: kind.to_owned(),
        snapshot: "snap-local-absent".to_owned(),
        volume: "nothing".to_owned(),
        token: "dfk_zzzzzzzz".to_owned(),
        link: "pl-none".to_owned(),
    }
}

/// A body that each operation takes, so that it gets as far as looking for the thing.
fn body_of(id: &str) -> Value {
    match id {
        "exec" | "exec_stream" => json!({"cmd": "true"}),
        "run" | "run_code" | "run_code_stream" => json!({"code": "1"}),
        "set_network" => json!({"mode": "deny"}),
        "allow_network" => json!({"rules": ["example.com"]}),
        "set_network_default" => json!({"mode": "deny"}),
        "fork_sandbox_tree" => json!({"count": 1}),
        "rollback_sandbox" => json!({"snapshot_id": "snap-local-absent"}),
        "signal_process" => json!({"signal": 15}),
        "resize_process" => json!({"rows": 24, "columns": 80}),
        "make_directory" | "create_file_link" => json!({"path": "/tmp/a"}),
        "move_file" => json!({"from": "/tmp/a", "to": "/tmp/b"}),
        "change_mode" => json!({"path": "/tmp/a", "mode": "0644"}),
        "create_volume" => json!({"name": "other", "size_mb": 64}),
        "grow_volume" => json!({"size_mb": 128}),
        "create_project" => json!({"id": "made-by-matrix"}),
        "suspend_project" => json!({"reason": "test"}),
        _ => json!({}),
    }
}

pub(crate) fn operations() -> Vec<Operation> {
    let document = serde_json::to_value(dayfly_control::openapi()).unwrap();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Ok(method) = Method::from_bytes(method.to_uppercase().as_bytes()) else {
                continue;
            };
            let Some(id) = operation["operationId"].as_str() else {
                continue;
            };
            found.push(Operation {
                id: id.to_owned(),
                method,
                path: path.clone(),
                body: body_of(id),
            });
        }
    }
    assert!(found.len() >= 70, "{}", found.len());
    found
}

impl Operation {
    fn is_about_something(&self) -> bool {
        self.path.contains('{') && !self.path.starts_with("/v1/templates")
    }

    fn path_with(&self, names: &Names) -> String {
        let id = if self.path.starts_with("/v1/snapshots") {
            &names.snapshot
        } else {
            &names.sandbox
        };
        let path = self
            .path
            .replace("{id}", id)
            .replace("{name}", &names.volume)
            .replace("{prefix}", &names.token)
            .replace("{link}", &names.link)
            .replace("{port}", "8080")
            .replace("{exec_id}", "ex-1")
            .replace("{sid}", "ctx-1")
            .replace("{project}", "default");
        let names_a_file = path.ends_with("/fs") || path.ends_with("/fs/tar");
        if names_a_file || self.method == Method::GET {
            format!("{path}?path=/tmp/a")
        } else {
            path
        }
    }

    pub(crate) async fn ask(&self, world: &World, key: &str, names: &Names) -> Answer {
        let path = self.path_with(names);
        if self.id.ends_with("_socket") {
            return ask_for_a_socket(world, key, &path).await;
        }
        world
            .ask(key, self.method.clone(), &path, self.body.clone())
            .await
    }
}

async fn ask_for_a_socket(world: &World, key: &str, path: &str) -> Answer {
    let request = http::Request::builder()
        .uri(format!("http://{}{path}", world.address))
        .header("authorization", format!("Bearer {key}"))
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==")
        .body(axum::body::Body::empty())
        .unwrap();
    world.send(request).await
}

/// What a caller can tell from an answer, apart from the names that it sent itself.
fn told(answer: &Answer, names: &Names) -> (StatusCode, String) {
    let mut text = String::from_utf8_lossy(&answer.body).into_owned();
    if let Ok(mut json) = serde_json::from_slice::<Value>(&answer.body) {
        json["request_id"] = Value::Null;
        text = json.to_string();
    }
    for name in [
        &names.sandbox,
        &names.snapshot,
        &names.volume,
        &names.token,
        &names.link,
    ] {
        text = text.replace(name.as_str(), "NAME");
    }
    (answer.status, text)
}

/// One of everything, in the project `default`.
async fn fill(world: &World) -> Names {
    let sandbox = world.create().await;
    let taken = world
        .post(&format!("/v1/sandboxes/{sandbox}/snapshots"), json!({}))
        .await;
    let volume = world
        .post("/v1/volumes", json!({"name": "mine", "size_mb": 64}))
        .await;
    assert_eq!(volume.status, StatusCode::CREATED, "{}", volume.text());
    let token = world.post("/v1/me/tokens", json!({"label": "mine"})).await;
    assert_eq!(token.status, StatusCode::CREATED, "{}", token.text());
    let link = world
        .post(
            &format!("/v1/sandboxes/{sandbox}/ports/8080/links"),
            json!({}),
        )
        .await;
    let text = |answer: &Answer, field: &str| answer.json()[field].as_str().unwrap().to_owned();
    Names {
        sandbox,
        snapshot: text(&taken, "id"),
        volume: "mine".to_owned(),
        token: text(&token, "prefix"),
        link: text(&link, "id"),
    }
}

async fn everything(world: &World) -> Vec<Value> {
    let mut all = Vec::new();
    for path in [
        "/v1/sandboxes",
        "/v1/snapshots",
        "/v1/volumes",
        "/v1/me/tokens",
    ] {
        all.push(world.get(path).await.json());
    }
    all
}

/// A key of project `other` that is no operator's.
async fn foreign_key(world: &World) -> String {
    let made = world
        .ask(
            &world.foreign_key,
            Method::POST,
            "/v1/me/tokens",
            json!({"scopes": ["admin"]}),
        )
        .await;
    made.json()["token"].as_str().unwrap().to_owned()
}

/// Where two refusals of the same call are two entries.
fn each_refusal_recorded() -> Setup {
    let mut setup = Setup::default();
    setup.reconcile.audit.repeats_within = Duration::ZERO;
    setup
}

async fn audited(world: &World, key: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/v1/audit?limit=1000{cursor}");
        let page = world.ask(key, Method::GET, &path, json!({})).await.json();
        for item in page["items"].as_array().unwrap() {
            found.insert(item["request_id"].as_str().unwrap().to_owned());
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

#[tokio::test]
async fn i1_what_is_another_project_s_looks_like_what_does_not_exist() {
    let world = World::with(each_refusal_recorded()).await;
    let mine = fill(&world).await;
    let before = everything(&world).await;
    let stranger = foreign_key(&world).await;
    let absent = names(ABSENT_SANDBOX);
    let (mut refused, mut open) = (Vec::new(), Vec::new());
    let mut checked = 0;
    for operation in operations().iter().filter(|one| one.is_about_something()) {
        let theirs = operation.ask(&world, &stranger, &mine).await;
        let nothing = operation.ask(&world, &stranger, &absent).await;
        let what = format!("{} {}", operation.method, operation.path);
        assert_eq!(told(&theirs, &mine), told(&nothing, &absent), "{what}");
        let is_hidden = matches!(
            theirs.status,
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN | StatusCode::NO_CONTENT
        );
        if !is_hidden {
            open.push(format!("{what}: {} {}", theirs.status, theirs.text()));
        }
        for answer in [theirs, nothing] {
            let id = answer.headers["x-request-id"].to_str().unwrap();
            refused.push((what.clone(), id.to_owned()));
        }
        checked += 1;
    }
    assert!(open.is_empty(), "{open:#?}");
    assert!(checked >= 55, "{checked}");
    assert_eq!(everything(&world).await, before, "something was changed");
    let record = audited(&world, &stranger).await;
    for (what, id) in refused {
        assert!(record.contains(&id), "{what} is not in the audit record");
    }
}

#[tokio::test]
async fn i1_a_key_without_the_scope_learns_nothing() {
    let world = World::start().await;
    let mine = fill(&world).await;
    let absent = names(ABSENT_SANDBOX);
    let mut keys = Vec::new();
    for scope in ["read", "create", "exec"] {
        let made = world
            .post("/v1/me/tokens", json!({"scopes": [scope]}))
            .await
            .json();
        keys.push((scope, made["token"].as_str().unwrap().to_owned()));
    }
    let before = everything(&world).await;
    let mut denied = 0;
    for operation in operations() {
        if operation.path == "/health" || operation.id == "follow_events" {
            continue;
        }
        // It looks at no key.
        if operation.id == "sign_in" {
            continue;
        }
        for (scope, key) in &keys {
            let reads = operation.method == Method::GET;
            let may_change = *scope == "create" && !reads || *scope == "exec";
            let theirs = match () {
                // What it may do, it would do.
                () if may_change && operation.id != "create_token" => continue,
                () => operation.ask(&world, key, &mine).await,
            };
            if theirs.status != StatusCode::FORBIDDEN {
                assert!(reads, "{scope} {} {}", operation.id, theirs.status);
                continue;
            }
            let nothing = operation.ask(&world, key, &absent).await;
            let what = format!("{scope}: {}", operation.id);
            assert_eq!(told(&theirs, &mine), told(&nothing, &absent), "{what}");
            denied += 1;
        }
    }
    assert!(denied >= 60, "{denied}");
    assert_eq!(everything(&world).await, before, "something was changed");
}
