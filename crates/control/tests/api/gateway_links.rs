//! Links: who has the token, or anybody, until they end.

use axum::body::Body;
use dayfly_control::GatewaySettings;
use dayfly_control::store::PortLinkRow;
use dayfly_types::{ProjectId, SandboxId};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::gateway::{PORT, by_host, served, visit};
use crate::support::{Setup, World, eventually, service};

#[tokio::test]
async fn a_page_of_another_sandbox_cannot_use_the_cookie_of_this_one() {
    let (world, id) = served(Setup::default()).await;
    let made = link(&world, &id, json!({"ttl_seconds": 60})).await;
    let cookie = format!(
        "dayfly_port_{PORT}_{id}={}",
        made["token"].as_str().unwrap()
    );
    let port = world.address.port();
    let path = format!("/v1/sandboxes/{id}/ports/{PORT}/http/a");
    let asked = |by_path: bool, origin: String| {
        let request = if by_path {
            Request::builder().uri(format!("http://{}{path}", world.address))
        } else {
            by_host(&world, &id, "/a")
        };
        let request = request.method("POST").header("cookie", &cookie);
        visit(&world, request.header("origin", origin))
    };
    for (by_path, origin) in [
        (false, format!("http://{PORT}-{id}.localhost:{port}")),
        (false, format!("http://3000-{id}.localhost:{port}")),
        (true, format!("http://{}", world.address)),
    ] {
        let told = asked(by_path, origin.clone()).await;
        assert_eq!(told.status, StatusCode::OK, "{origin}: {}", told.text());
    }
    let before = world.node.port_calls();
    for (by_path, origin) in [
        (false, format!("http://{PORT}-sb-other.localhost:{port}")),
        (false, "https://evil.test".to_owned()),
        (false, "null".to_owned()),
        (true, format!("http://{PORT}-{id}.localhost:{port}")),
    ] {
        let told = asked(by_path, origin.clone()).await;
        assert_eq!(told.status, StatusCode::NOT_FOUND, "{origin}");
    }
    let embedded = by_host(&world, &id, "/a")
        .header("cookie", &cookie)
        .header("sec-fetch-site", "same-site")
        .header("sec-fetch-mode", "no-cors")
        .header("sec-fetch-dest", "image");
    assert_eq!(visit(&world, embedded).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.node.port_calls(), before);
    let followed = by_host(&world, &id, "/a")
        .header("cookie", &cookie)
        .header("sec-fetch-site", "cross-site")
        .header("sec-fetch-mode", "navigate")
        .header("sec-fetch-dest", "document");
    assert_eq!(visit(&world, followed).await.status, StatusCode::OK);
}

async fn link(world: &World, id: &str, body: Value) -> Value {
    let made = world
        .post(&format!("/v1/sandboxes/{id}/ports/{PORT}/links"), body)
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    made.json()
}

async fn revoke(world: &World, id: &str, link: &Value) -> StatusCode {
    let link = link["id"].as_str().unwrap();
    let path = format!("/v1/sandboxes/{id}/ports/{PORT}/links/{link}");
    world.delete(&path).await.status
}

#[tokio::test]
async fn a_token_in_the_address_becomes_a_cookie() {
    let (world, id) = served(Setup::default()).await;
    let made = link(&world, &id, json!({"ttl_seconds": 60})).await;
    let token = made["token"].as_str().unwrap();
    let url = made["url"].as_str().unwrap();
    let port = world.address.port();
    let name = format!("{PORT}-{id}.localhost:{port}");
    assert_eq!(url, format!("http://{name}/?dayfly_token={token}"));
    let before = world.node.port_calls();
    let path = format!("/v1/sandboxes/{id}/ports/{PORT}/http");
    let by_path = |rest: &str| {
        let uri = format!("http://{}{path}{rest}", world.address);
        Request::builder().uri(uri)
    };
    for (first, location, cookie_path) in [
        (
            by_host(&world, &id, &format!("/a?x=1&dayfly_token={token}")),
            "/a?x=1".to_owned(),
            "/".to_owned(),
        ),
        (
            by_host(&world, &id, &format!("//evil.test/?dayfly_token={token}")),
            "/.//evil.test/".to_owned(),
            "/".to_owned(),
        ),
        (
            by_host(&world, &id, &format!("/\\evil.test/?dayfly_token={token}")),
            "/./\\evil.test/".to_owned(),
            "/".to_owned(),
        ),
        (
            by_path(&format!("/a?dayfly_token={token}")),
            format!("{path}/a"),
            format!("{path}/"),
        ),
    ] {
        let first = first.header("accept", "text/html,*/*;q=0.8");
        let sent = visit(&world, first).await;
        assert_eq!(sent.status, StatusCode::SEE_OTHER);
        assert_eq!(sent.headers["location"], location);
        let cookie = sent.headers["set-cookie"].to_str().unwrap().to_owned();
        let start = format!(
            "dayfly_port_{PORT}_{id}={token}; HttpOnly; SameSite=Lax; Path={cookie_path}; Max-Age="
        );
        assert!(cookie.starts_with(&start), "{cookie}");
    }
    assert_eq!(world.node.port_calls(), before);
    let cookie = format!("dayfly_port_{PORT}_{id}=tossed; dayfly_port_{PORT}_{id}={token}");
    for request in [
        by_host(&world, &id, "/a").header("cookie", &cookie),
        by_host(&world, &id, "/a").header("x-dayfly-token", token),
        by_path("/a").header("cookie", &cookie),
        by_host(&world, &id, &format!("/a?dayfly_token={token}")).method("POST"),
        // As programs ask: what they show is no page, and many keep no cookie.
        by_host(&world, &id, &format!("/a?dayfly_token={token}")),
        by_path(&format!("/a?dayfly_token={token}")).header("accept", "*/*"),
        by_path(&format!("/a?dayfly_token={token}"))
            .header("accept", "text/html")
            .header("sec-fetch-mode", "cors"),
    ] {
        let told = visit(&world, request).await;
        assert_eq!(told.status, StatusCode::OK, "{}", told.text());
        assert_eq!(told.json()["uri"], "/a");
    }
}

#[tokio::test]
async fn links_are_listed_without_tokens_and_revoked() {
    let (world, id) = served(Setup::default()).await;
    let links = format!("/v1/sandboxes/{id}/ports/{PORT}/links");
    let made = link(&world, &id, json!({})).await;
    let public = link(&world, &id, json!({"public": true})).await;
    assert!(public.get("token").is_none() && public["public"] == true);
    assert!(!public["url"].as_str().unwrap().contains('?'));
    let token = made["token"].as_str().unwrap();
    let listed = world.get(&links).await;
    assert!(!listed.text().contains(token));
    assert_eq!(listed.json()["items"].as_array().unwrap().len(), 2);
    assert_eq!(listed.json()["items"][0]["id"], made["id"]);
    let other_port = world
        .get(&format!("/v1/sandboxes/{id}/ports/9/links"))
        .await;
    assert_eq!(other_port.json(), json!({"items": []}));
    let anybody = || visit(&world, by_host(&world, &id, "/"));
    assert_eq!(anybody().await.status, StatusCode::OK);
    assert_eq!(revoke(&world, &id, &public).await, StatusCode::NO_CONTENT);
    assert_eq!(anybody().await.status, StatusCode::NOT_FOUND);
    let with_token = || {
        visit(
            &world,
            by_host(&world, &id, "/").header("x-dayfly-token", token),
        )
    };
    assert_eq!(with_token().await.status, StatusCode::OK);
    assert_eq!(revoke(&world, &id, &made).await, StatusCode::NO_CONTENT);
    assert_eq!(with_token().await.status, StatusCode::NOT_FOUND);
    assert_eq!(revoke(&world, &id, &made).await, StatusCode::NOT_FOUND);
    assert_eq!(world.get(&links).await.json(), json!({"items": []}));
}

#[tokio::test]
async fn wishes_that_do_not_fit_are_refused() {
    let (world, id) = served(Setup::default()).await;
    let links = format!("/v1/sandboxes/{id}/ports/{PORT}/links");
    for body in [
        json!({"ttl_seconds": 0}),
        json!({"ttl_seconds": 604_801}),
        json!({"ttl_seconds": -1}),
        json!({"public": "yes"}),
        json!({"password": "x"}),
    ] {
        assert_eq!(world.post(&links, body).await.refusal(), "invalid_request");
    }
    for port in ["0", "65536", "080", "x", "-1"] {
        let path = format!("/v1/sandboxes/{id}/ports/{port}/links");
        assert_eq!(world.post(&path, json!({})).await.refusal(), "not_found");
    }
    let foreign = world
        .ask(
            &world.foreign_key,
            Method::POST,
            &links,
            json!({"public": true}),
        )
        .await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
    for _ in 0..64 {
        link(&world, &id, json!({"ttl_seconds": 604_800})).await;
    }
    assert_eq!(world.post(&links, json!({})).await.refusal(), "too_many");
}

#[tokio::test]
async fn a_link_opens_one_port_of_one_sandbox() {
    let (world, id) = served(Setup::default()).await;
    let other = world.create().await;
    world.node.listen(&other, PORT, service::start().await);
    world.node.listen(&id, 9, service::start().await);
    let token = link(&world, &id, json!({})).await["token"].clone();
    let token = token.as_str().unwrap();
    link(&world, &id, json!({"public": true})).await;
    let before = world.node.port_calls();
    let cookie = format!("dayfly_port_{PORT}_{other}={token}; dayfly_port_{PORT}_{id}={token}");
    let name = format!("9-{id}.localhost");
    let uri = format!("http://{}/", world.address);
    for request in [
        by_host(&world, &other, "/"),
        by_host(&world, &other, "/").header("x-dayfly-token", token),
        by_host(&world, &other, "/").header("cookie", &cookie),
        by_host(&world, &other, &format!("/?dayfly_token={token}")),
        Request::builder()
            .uri(&uri)
            .header("host", &name)
            .header("x-dayfly-token", token),
    ] {
        assert_eq!(visit(&world, request).await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(world.node.port_calls(), before);
}

#[tokio::test]
async fn a_link_of_a_deleted_sandbox_opens_nothing() {
    let (world, id) = served(Setup::default()).await;
    link(&world, &id, json!({"public": true})).await;
    world.delete(&format!("/v1/sandboxes/{id}")).await;
    let before = world.node.port_calls();
    let refused = visit(&world, by_host(&world, &id, "/")).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    assert_eq!(world.node.port_calls(), before);
}

/// Opens an answer that never ends.
pub(crate) async fn endless(
    world: &World,
    request: http::request::Builder,
) -> hyper::body::Incoming {
    let response = world.open(request.body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    let first = body.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "begin");
    body
}

/// Waits until a body breaks, for at most a second.
pub(crate) async fn breaks(mut body: hyper::body::Incoming) -> bool {
    let next = tokio::time::timeout(std::time::Duration::from_secs(1), body.frame()).await;
    matches!(next, Ok(Some(Err(_))))
}

#[tokio::test]
async fn a_revoked_link_cuts_its_connections_and_no_others() {
    let (world, id) = served(Setup::default()).await;
    let (one, two) = (
        link(&world, &id, json!({})).await,
        link(&world, &id, json!({})).await,
    );
    let open = |link: &Value| {
        let token = link["token"].as_str().unwrap();
        by_host(&world, &id, "/forever").header("x-dayfly-token", token)
    };
    let first = endless(&world, open(&one)).await;
    let second = endless(&world, open(&two)).await;
    let by_key = crate::gateway::with_key(&world, by_host(&world, &id, "/forever"));
    let third = endless(&world, by_key).await;
    revoke(&world, &id, &one).await;
    assert!(breaks(first).await);
    revoke(&world, &id, &two).await;
    assert!(breaks(second).await);
    assert!(!breaks(third).await);
}

#[tokio::test]
async fn an_expired_link_is_dead_and_cuts_its_connections() {
    let (world, id) = served(Setup::default()).await;
    let sandbox = SandboxId::parse(&id).unwrap();
    let now = dayfly_control::time::now_ms();
    let row = PortLinkRow {
        id: "soon".to_owned(),
        project: ProjectId::default_project(),
        port: PORT,
        made_by: None,
        token_hash: None,
        created_at_ms: now,
        expires_at_ms: now + 1500,
    };
    world
        .control
        .store
        .insert_port_link(&sandbox, &row)
        .await
        .unwrap();
    let mut body = endless(&world, by_host(&world, &id, "/forever")).await;
    assert!(matches!(body.frame().await, Some(Err(_))));
    let refused = visit(&world, by_host(&world, &id, "/")).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn connections_to_one_sandbox_are_counted_and_given_back() {
    let setup = Setup {
        gateway: GatewaySettings {
            connections_max: 2,
            ..GatewaySettings::default()
        },
        ..Setup::default()
    };
    let (world, id) = served(setup).await;
    link(&world, &id, json!({"public": true})).await;
    let one = endless(&world, by_host(&world, &id, "/forever")).await;
    let two = endless(&world, by_host(&world, &id, "/forever")).await;
    let refused = visit(&world, by_host(&world, &id, "/")).await;
    assert_eq!(refused.refusal(), "too_many");
    drop((one, two));
    eventually("there is room again", async || {
        visit(&world, by_host(&world, &id, "/")).await.status == StatusCode::OK
    })
    .await;
}

#[tokio::test]
async fn links_of_all_ports_are_listed_with_their_makers() {
    let (world, id) = served(Setup::default()).await;
    let first = link(&world, &id, json!({})).await;
    let path = format!("/v1/sandboxes/{id}/ports/9/links");
    let made = world.post(&path, json!({"public": true})).await.json();
    let listed = world.get(&format!("/v1/sandboxes/{id}/links")).await.json();
    let items = listed["items"].as_array().unwrap();
    let of = |item: &Value| (item["id"].clone(), item["port"].clone());
    let found: Vec<_> = items.iter().map(of).collect();
    assert_eq!(found, [of(&made), of(&first)], "by port");
    let maker = &world.key[..12];
    assert!(
        items
            .iter()
            .all(|item| item["made_by"] == maker && item.get("token").is_none())
    );
    let foreign = world
        .ask(
            &world.foreign_key,
            Method::GET,
            &format!("/v1/sandboxes/{id}/links"),
            json!({}),
        )
        .await;
    assert_eq!(foreign.refusal(), "not_found");
}
