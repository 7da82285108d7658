//! Links to one file: what they let in, and nothing else.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::gateway::{by_host, served, visit as visit_port};
use crate::support::{Answer, Setup, World};

const CONTENT: &[u8] = b"1,2";

async fn link(world: &World, sandbox: &str, body: Value) -> Value {
    let made = world
        .post(&format!("/v1/sandboxes/{sandbox}/fs/links"), body)
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    made.json()
}

/// Asks without a key of its own.
async fn visit(world: &World, method: Method, address: &str) -> Answer {
    let mut request = world.request(method, address);
    if let Some(headers) = request.headers_mut() {
        headers.remove("authorization");
    }
    let body = axum::body::Body::from(CONTENT);
    world.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn a_file_comes_and_goes_by_a_link_without_a_key() {
    let world = World::start().await;
    let id = world.create().await;
    let path = "/workspace/a b&c.csv";
    world.node.put_file(&id, path, CONTENT.to_vec());
    let download = link(&world, &id, json!({"path": "a b&c.csv"})).await;
    assert_eq!(download["method"], "GET");
    assert!(download["expires_at"].is_string());
    let address = download["address"].as_str().unwrap();
    let read = visit(&world, Method::GET, address).await;
    assert_eq!((read.status, &read.body[..]), (StatusCode::OK, CONTENT));

    let wish = json!({"path": path, "operation": "upload", "ttl_seconds": 60});
    let upload = link(&world, &id, wish).await;
    assert_eq!(upload["method"], "PUT");
    let address = upload["address"].as_str().unwrap();
    let written = visit(&world, Method::PUT, address).await;
    assert_eq!(
        written.json(),
        json!({"path": path, "bytes": CONTENT.len()})
    );

    // The record has the link's own key, and whose it is.
    let audit = world.get(&format!("/v1/audit?subject={id}&limit=1")).await;
    let entry = &audit.json()["items"][0];
    assert_eq!(entry["key_prefix"], upload["id"]);
    assert!(!audit.text().contains("dayfly_token"), "{}", audit.text());
    let audit = world.get(&format!("/v1/audit?subject={id}")).await.json();
    let entries = audit["items"].as_array().unwrap().iter();
    let mut making = entries.filter(|entry| entry["detail"]["link"] == upload["id"]);
    let made = &making.next().unwrap()["detail"];
    assert_eq!(
        (&made["path"], &made["operation"]),
        (&json!(path), &json!("upload"))
    );
    let keys = world.get("/v1/me/tokens").await.json();
    let keys = keys["items"].as_array().unwrap();
    let own = keys.iter().find(|key| key["prefix"] == upload["id"]);
    assert_eq!(own.unwrap()["label"], format!("upload of {path}"));
}

#[tokio::test]
async fn a_link_is_for_its_file_and_its_operation_alone() {
    let world = World::start().await;
    let (id, other) = (world.create().await, world.create().await);
    for sandbox in [&id, &other] {
        for path in ["/workspace/a", "/workspace/b", "/root/a"] {
            world.node.put_file(sandbox, path, CONTENT.to_vec());
        }
    }
    let made = link(&world, &id, json!({"path": "/workspace/a"})).await;
    let address = made["address"].as_str().unwrap();
    assert_eq!(
        visit(&world, Method::GET, address).await.status,
        StatusCode::OK
    );
    let token = address.split("dayfly_token=").nth(1).unwrap();
    let base = format!("/v1/sandboxes/{id}/fs");
    for (method, address) in [
        (Method::PUT, address.to_owned()),
        (Method::DELETE, address.to_owned()),
        (Method::HEAD, address.to_owned()),
        (
            Method::GET,
            format!("{base}?path=/workspace/b&dayfly_token={token}"),
        ),
        (
            Method::GET,
            format!("{base}?path=/workspace/a&user=root&dayfly_token={token}"),
        ),
        (
            Method::GET,
            format!("{base}?dayfly_token={token}&path=/workspace/a&path=/root/a"),
        ),
        (
            Method::GET,
            format!("{base}/dir?path=/workspace/a&dayfly_token={token}"),
        ),
        (Method::GET, address.replace(&id, &other)),
        (Method::GET, format!("/v1/sandboxes?dayfly_token={token}")),
        (Method::GET, format!("/v1/me?dayfly_token={token}")),
    ] {
        let refused = visit(&world, method.clone(), &address).await;
        let wanted = [StatusCode::FORBIDDEN, StatusCode::UNAUTHORIZED];
        assert!(
            wanted.contains(&refused.status),
            "{method} {address}: {}",
            refused.status
        );
    }
    // Nor in the header.
    for path in [
        "/v1/me",
        "/v1/sandboxes",
        &format!("{base}/dir?path=/workspace"),
    ] {
        let refused = world.ask(token, Method::GET, path, Value::Null).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
    }
    let path = format!("/v1/sandboxes/{id}/exec");
    let exec = world.ask(token, Method::POST, &path, json!({"cmd": "id"}));
    assert_eq!(exec.await.status, StatusCode::FORBIDDEN);
    assert!(world.node.last_exec().is_none());
}

/// A name that holds what could begin an option is a name.
#[tokio::test]
async fn the_name_of_a_file_is_no_option() {
    let world = World::start().await;
    let id = world.create().await;
    let base = format!("/v1/sandboxes/{id}/fs");
    for path in ["/workspace/a&user=root", "/workspace/a b&c.csv"] {
        world.node.put_file(&id, path, CONTENT.to_vec());
        for operation in ["download", "upload"] {
            let made = link(&world, &id, json!({"path": path, "operation": operation})).await;
            let address = made["address"].as_str().unwrap();
            let method = Method::from_bytes(made["method"].as_str().unwrap().as_bytes()).unwrap();
            let served = visit(&world, method.clone(), address).await;
            assert_eq!(served.status, StatusCode::OK, "{address}");
            assert_eq!(served.headers["cache-control"], "private, no-store");
            let token = address.split("dayfly_token=").nth(1).unwrap();
            let raw = format!(
                "{base}?path={}&dayfly_token={token}",
                path.replace(' ', "+")
            );
            let refused = visit(&world, method, &raw).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{raw}");
        }
    }
}

#[tokio::test]
async fn a_link_to_a_file_opens_no_port() {
    let (world, id) = served(Setup::default()).await;
    world.node.put_file(&id, "/workspace/a", CONTENT.to_vec());
    let made = link(&world, &id, json!({"path": "/workspace/a"})).await;
    let address = made["address"].as_str().unwrap();
    let read = visit(&world, Method::GET, address).await;
    assert_eq!(read.status, StatusCode::OK);
    let token = address.split("dayfly_token=").nth(1).unwrap();
    let with_key =
        |key: &str| by_host(&world, &id, "/").header("authorization", format!("Bearer {key}"));
    let in_query = by_host(&world, &id, &format!("/?dayfly_token={token}"));
    let before = world.node.port_calls();
    for asked in [with_key(token), in_query] {
        let refused = visit_port(&world, asked).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(world.node.port_calls(), before);
    let served = visit_port(&world, with_key(&world.key)).await;
    assert_eq!(served.status, StatusCode::OK);
}

#[tokio::test]
async fn an_api_key_in_an_address_is_refused() {
    let world = World::start().await;
    let id = world.create().await;
    world.node.put_file(&id, "/workspace/a", CONTENT.to_vec());
    let base = format!("/v1/sandboxes/{id}/fs?path=/workspace/a");
    let refused = visit(
        &world,
        Method::GET,
        &format!("{base}&dayfly_token={}", world.key),
    )
    .await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert!(refused.text().contains("address"), "{}", refused.text());
    let wrong = visit(
        &world,
        Method::GET,
        &format!("{base}&dayfly_token=dfk_wrong"),
    )
    .await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_link_ends_when_it_is_revoked_and_with_its_time() {
    let world = World::start().await;
    let id = world.create().await;
    world.node.put_file(&id, "/workspace/a", CONTENT.to_vec());
    let made = link(&world, &id, json!({"path": "a"})).await;
    let address = made["address"].as_str().unwrap();
    let prefix = made["id"].as_str().unwrap();
    let revoked = world.delete(&format!("/v1/me/tokens/{prefix}")).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    let refused = visit(&world, Method::GET, address).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);

    for seconds in [0, 604_801] {
        let wish = json!({"path": "a", "ttl_seconds": seconds});
        let refused = world
            .post(&format!("/v1/sandboxes/{id}/fs/links"), wish)
            .await;
        assert_eq!(refused.refusal(), "invalid_request");
    }
    // What makes it may not be used for longer, so neither may it.
    let short = json!({"scopes": ["exec"], "expires_in_seconds": 100});
    let maker = world.post("/v1/me/tokens", short).await.json();
    let key = maker["token"].as_str().unwrap();
    let path = format!("/v1/sandboxes/{id}/fs/links");
    let made = world
        .ask(key, Method::POST, &path, json!({"path": "a"}))
        .await;
    assert_eq!(made.json()["expires_at"], maker["expires_at"]);
}

/// A key with these scopes, as the answer to whoever made it shows it.
async fn key(world: &World, wish: Value) -> Value {
    let made = world.post("/v1/me/tokens", wish).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    made.json()
}

fn secret(key: &Value) -> &str {
    key["token"].as_str().unwrap()
}

async fn link_by(world: &World, key: &str, sandbox: &str) -> Value {
    let path = format!("/v1/sandboxes/{sandbox}/fs/links");
    let wish = json!({"path": "/workspace/a"});
    let made = world.ask(key, Method::POST, &path, wish).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    made.json()
}

async fn revoke_by(world: &World, key: &str, sandbox: &str, link: &Value) -> Answer {
    let link = link["id"].as_str().unwrap();
    let path = format!("/v1/sandboxes/{sandbox}/fs/links/{link}");
    world.ask(key, Method::DELETE, &path, Value::Null).await
}

async fn works(world: &World, link: &Value) -> bool {
    let address = link["address"].as_str().unwrap();
    visit(world, Method::GET, address).await.status == StatusCode::OK
}

#[tokio::test]
async fn whoever_made_a_link_to_a_file_ends_it_without_administering_keys() {
    let world = World::start().await;
    let id = world.create().await;
    world.node.put_file(&id, "/workspace/a", CONTENT.to_vec());
    let for_all = key(&world, json!({"scopes": ["exec"]})).await;
    let for_one = key(&world, json!({"scopes": ["exec"], "sandbox_id": id})).await;
    for maker in [&for_all, &for_one] {
        let maker = secret(maker);
        let [made, kept] = [
            link_by(&world, maker, &id).await,
            link_by(&world, maker, &id).await,
        ];
        let ended = revoke_by(&world, maker, &id, &made).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.text());
        assert!(!works(&world, &made).await);
        assert!(works(&world, &kept).await, "its other link ended as well");
        let again = revoke_by(&world, maker, &id, &made).await;
        assert_eq!(again.status, StatusCode::NOT_FOUND);
        // Who ended which link is in the record.
        let audit = world.get(&format!("/v1/audit?subject={id}")).await.json();
        let entries = audit["items"].as_array().unwrap().iter();
        let mut ends =
            entries.filter(|entry| entry["status"] == 204 && entry["detail"]["link"] == made["id"]);
        assert_eq!(ends.next().unwrap()["key_prefix"], maker[..12]);
    }
}

#[tokio::test]
async fn nobody_else_ends_a_link_to_a_file_as_its_maker() {
    let world = World::start().await;
    let (id, other) = (world.create().await, world.create().await);
    for sandbox in [&id, &other] {
        world
            .node
            .put_file(sandbox, "/workspace/a", CONTENT.to_vec());
    }
    let maker = key(&world, json!({"scopes": ["exec", "admin"]})).await;
    let maker = secret(&maker);
    let made = link_by(&world, maker, &id).await;
    let wish = json!({"scopes": ["exec"]});
    let child = world.ask(maker, Method::POST, "/v1/me/tokens", wish).await;
    let child = child.json();

    let stranger = key(&world, json!({"scopes": ["exec"]})).await;
    let reader = key(&world, json!({"scopes": ["read", "create"]})).await;
    let elsewhere = key(&world, json!({"scopes": ["exec"], "sandbox_id": other})).await;
    let address = made["address"].as_str().unwrap();
    let own = address.split("dayfly_token=").nth(1).unwrap();
    for (who, asker, status) in [
        ("another key", secret(&stranger), StatusCode::NOT_FOUND),
        (
            "a key that the maker made",
            secret(&child),
            StatusCode::NOT_FOUND,
        ),
        (
            "an operator's key",
            world.key.as_str(),
            StatusCode::NOT_FOUND,
        ),
        (
            "a key of another project",
            world.foreign_key.as_str(),
            StatusCode::NOT_FOUND,
        ),
        (
            "a key of another sandbox",
            secret(&elsewhere),
            StatusCode::NOT_FOUND,
        ),
        (
            "a key without the scope",
            secret(&reader),
            StatusCode::FORBIDDEN,
        ),
        ("the link itself", own, StatusCode::FORBIDDEN),
    ] {
        let refused = revoke_by(&world, asker, &id, &made).await;
        assert_eq!(refused.status, status, "{who}: {}", refused.text());
    }
    // Nor does the maker by the name of another sandbox, nor anything that is no link to a file.
    let wrong = revoke_by(&world, maker, &other, &made).await;
    assert_eq!(wrong.status, StatusCode::NOT_FOUND, "{}", wrong.text());
    let wrong = revoke_by(&world, maker, &id, &json!({"id": child["prefix"]})).await;
    assert_eq!(wrong.status, StatusCode::NOT_FOUND, "{}", wrong.text());
    let me = world.ask(secret(&child), Method::GET, "/v1/me", Value::Null);
    assert_eq!(me.await.status, StatusCode::OK);

    assert!(works(&world, &made).await);
    let ended = revoke_by(&world, maker, &id, &made).await;
    assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.text());
    assert!(!works(&world, &made).await);
}
