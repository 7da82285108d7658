//! Every route but one refuses strangers.

use axum::body::Body;
use http::{Method, Request, StatusCode};

use crate::support::World;

/// Every documented method and path, with something in place of each parameter.
fn documented() -> Vec<(Method, String)> {
    let document = serde_json::to_value(dayfly_control::openapi()).unwrap();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.replace("{id}", "sb-local-x").replace("{name}", "base");
        for method in item.as_object().unwrap().keys() {
            if let Ok(method) = Method::from_bytes(method.to_uppercase().as_bytes()) {
                routes.push((method, format!("{path}?path=/a")));
            }
        }
    }
    assert!(routes.len() >= 15);
    routes
}

#[tokio::test]
async fn every_route_but_health_refuses_a_missing_or_wrong_key() {
    let world = World::start().await;
    let mut routes = documented();
    routes.push((Method::GET, "/v1/nonsense".to_owned()));
    routes.push((Method::PATCH, "/v1/sandboxes".to_owned()));
    routes.push((Method::GET, "/".to_owned()));
    routes.push((Method::POST, "/health".to_owned()));
    routes.push((Method::POST, "/ready".to_owned()));
    routes.push((Method::GET, "/ready/".to_owned()));
    routes.push((Method::GET, "/v1/sign-in/".to_owned()));
    let wrong = [
        None,
        Some("Bearer dfk_wrong".to_owned()),
        Some("Bearer ".to_owned()),
        Some("Bearer".to_owned()),
        Some(format!("Basic {}", world.key)),
        Some(world.key.clone()),
        Some(format!("Bearer {}x", world.key)),
    ];
    for (method, path) in routes {
        let is_open = matches!(path.split('?').next(), Some("/health" | "/ready"));
        let is_sign_in = path.split('?').next() == Some("/v1/sign-in");
        if method == Method::GET && is_open || is_sign_in {
            continue;
        }
        for authorization in &wrong {
            let mut request = Request::builder()
                .method(method.clone())
                .uri(format!("http://{}{path}", world.address));
            if let Some(value) = authorization {
                request = request.header("authorization", value);
            }
            let answer = world.send(request.body(Body::empty()).unwrap()).await;
            let what = format!("{method} {path} with {authorization:?}");
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{what}");
            assert_eq!(answer.refusal(), "unauthorized", "{what}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer", "{what}");
        }
    }
}

#[tokio::test]
async fn health_needs_no_key() {
    let world = World::start().await;
    let request = Request::builder()
        .uri(format!("http://{}/health", world.address))
        .body(Body::empty())
        .unwrap();
    let answer = world.send(request).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.json()["status"], "ok");
}

#[tokio::test]
async fn a_key_names_its_project() {
    let world = World::start().await;
    let me = world.get("/v1/me").await.json();
    assert_eq!(me["project"], "default");
    assert!(world.key.starts_with(me["key_prefix"].as_str().unwrap()));
}

#[tokio::test]
async fn a_new_admin_key_ends_the_old_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("control.db");
    let store = dayfly_control::store::Store::open(&path).await.unwrap();
    let (old, new) = ("a".repeat(64), "b".repeat(64));
    let revoked = async |hash: &str| {
        store
            .key_by_hash(hash)
            .await
            .unwrap()
            .unwrap()
            .key
            .revoked_at_ms
            .is_some()
    };
    store.ensure_admin_key(&old, 1).await.unwrap();
    store.ensure_admin_key(&new, 2).await.unwrap();
    assert!(revoked(&old).await && !revoked(&new).await);
    store.ensure_admin_key(&old, 3).await.unwrap();
    assert!(!revoked(&old).await && revoked(&new).await);
}
