//! People who sign in with an OpenID provider.

use std::path::PathBuf;

use axum::body::Body;
use dayfly_control::SignInSettings;
use dayfly_testkit::issuer::{CLIENT_ID, Signing, TestIssuer};
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::support::world::{Answer, Setup, World, eventually};

fn settings(issuer: &TestIssuer, more: &Value) -> SignInSettings {
    let grant = |claim: &str, value: &str, project: &str, role: &str| json!({"claim": claim, "value": value, "project": project, "role": role});
    let mut whole = json!({
        "issuer": issuer.name(), "client_id": CLIENT_ID,
        "grant": [
            grant("groups", "ml", "default", "developer"),
            grant("groups", "owners", "default", "owner"),
            grant("groups", "viewers", "default", "viewer"),
            grant("groups", "auditors", "default", "auditor"),
            grant("groups", "both", "default", "viewer"),
            grant("groups", "both", "other", "viewer"),
            grant("groups", "nowhere", "absent", "viewer"),
        ],
    });
    for (name, value) in more.as_object().unwrap() {
        whole[name] = value.clone();
    }
    SignInSettings::parse(&whole.to_string()).unwrap()
}

async fn world_with(issuer: &TestIssuer, more: &Value, database: Option<PathBuf>) -> World {
    let sign_in = Some(settings(issuer, more));
    World::with(Setup {
        sign_in,
        database,
        ..Setup::default()
    })
    .await
}

async fn world(issuer: &TestIssuer) -> World {
    world_with(issuer, &json!({}), None).await
}

/// With a provider that is asked nothing.
pub(crate) async fn world_where_people_sign_in() -> World {
    world(&TestIssuer::start().await).await
}

fn in_group(issuer: &TestIssuer, group: &str) -> String {
    issuer.token(Signing::P256, &issuer.claims_with("groups", json!([group])))
}

/// Without any key.
async fn ask(world: &World, method: Method, body: &Value) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(format!("http://{}/v1/sign-in", world.address))
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap();
    world.send(request).await
}

async fn sign_in(world: &World, token: &str) -> Answer {
    ask(world, Method::POST, &json!({"id_token": token})).await
}

async fn key_of(world: &World, token: &str) -> String {
    let answer = sign_in(world, token).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    answer.json()["token"].as_str().unwrap().to_owned()
}

async fn with_key(world: &World, key: &str, method: Method, path: &str) -> StatusCode {
    let request = Request::builder()
        .method(method)
        .uri(format!("http://{}{path}", world.address))
        .header("authorization", format!("Bearer {key}"))
        .body(Body::empty())
        .unwrap();
    world.send(request).await.status
}

#[tokio::test]
async fn a_person_gets_a_key_that_does_what_the_role_says() {
    let issuer = TestIssuer::start().await;
    let world = world(&issuer).await;
    let cases = [
        ("ml", 201, 403, 403),
        ("owners", 201, 200, 200),
        ("viewers", 403, 403, 403),
        ("auditors", 403, 403, 200),
    ];
    for (group, create, tokens, audit) in cases {
        let key = key_of(&world, &in_group(&issuer, group)).await;
        let status = async |method, path| with_key(&world, &key, method, path).await.as_u16();
        assert_eq!(status(Method::GET, "/v1/sandboxes").await, 200, "{group}");
        assert_eq!(
            status(Method::POST, "/v1/sandboxes").await,
            create,
            "{group}"
        );
        assert_eq!(
            status(Method::GET, "/v1/me/tokens").await,
            tokens,
            "{group}"
        );
        assert_eq!(status(Method::GET, "/v1/audit").await, audit, "{group}");
        assert_eq!(status(Method::GET, "/v1/projects").await, 403, "{group}");
    }
}

#[tokio::test]
async fn a_key_is_the_persons_and_ends_with_the_providers_word() {
    let issuer = TestIssuer::start().await;
    let world = world(&issuer).await;
    let made = sign_in(&world, &in_group(&issuer, "ml")).await.json();
    assert_eq!(made["label"], "ann@example.com");
    assert_eq!(made["project"], "default");
    assert_eq!(made["scopes"], json!(["read", "create", "exec"]));
    let lasts = |made: &Value| {
        let moment = |name: &str| {
            let text = made[name].as_str().unwrap();
            let format = &time::format_description::well_known::Rfc3339;
            time::OffsetDateTime::parse(text, format).unwrap()
        };
        (moment("expires_at") - moment("created_at")).whole_seconds()
    };
    assert!((295..=300).contains(&lasts(&made)), "{made}");
    let long = issuer.claims_with("exp", json!(dayfly_testkit::issuer::now() + 90_000));
    let made = sign_in(&world, &issuer.token(Signing::P256, &long)).await;
    let lasted = lasts(&made.json());
    assert!(
        (3595..=3600).contains(&lasted),
        "no longer than the settings say"
    );
    let mut old = long;
    old["iat"] = json!(dayfly_testkit::issuer::now() - 3601);
    let refused = sign_in(&world, &issuer.token(Signing::P256, &old)).await;
    assert_eq!(refused.refusal(), "unauthorized", "nor with an old token");

    let prefix = made.json()["prefix"].as_str().unwrap().to_owned();
    let is_recorded = async || {
        let record = world.get("/v1/audit").await.json();
        let entries = record["items"].as_array().unwrap().clone();
        entries.iter().any(|entry| {
            entry["subject"] == prefix.as_str()
                && entry["operation"] == "POST /v1/sign-in"
                && entry["detail"]["person"] == "subject-1"
                && entry["detail"]["roles"] == json!(["developer"])
        })
    };
    eventually("the record says who signed in", is_recorded).await;
}

#[tokio::test]
async fn who_has_no_role_gets_nothing() {
    let issuer = TestIssuer::start().await;
    let denied = json!({"denied": ["subject-1"]});
    let world_of_denied = world_with(&issuer, &denied, None).await;
    let world = world(&issuer).await;
    for (world, group) in [(&world, "strangers"), (&world_of_denied, "owners")] {
        let answer = sign_in(world, &in_group(&issuer, group)).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        assert_eq!(answer.refusal(), "forbidden");
    }
    let gone = sign_in(&world, &in_group(&issuer, "nowhere")).await;
    assert_eq!(gone.refusal(), "not_found");
    for wrong in [
        json!({}),
        json!({"id_token": 1}),
        json!({"id_token": "x", "more": 1}),
        json!({"id_token": "x", "project": "no\nproject"}),
    ] {
        let answer = ask(&world, Method::POST, &wrong).await;
        assert_eq!(answer.refusal(), "invalid_request", "{wrong}");
    }
    let refused = sign_in(&world, "no.token.atall").await;
    assert_eq!(refused.refusal(), "unauthorized");
    let stranger = TestIssuer::start().await;
    let forged = stranger.token(Signing::P256, &issuer.claims());
    let refused = sign_in(&world, &forged).await;
    assert_eq!(refused.refusal(), "unauthorized");
    assert!(refused.text().contains("signature"), "{}", refused.text());
}

#[tokio::test]
async fn people_of_several_projects_say_which() {
    let issuer = TestIssuer::start().await;
    let world = world(&issuer).await;
    let token = in_group(&issuer, "both");
    let asked = sign_in(&world, &token).await;
    assert_eq!(asked.refusal(), "invalid_request");
    assert!(asked.text().contains("default, other"), "{}", asked.text());
    for (project, status) in [("default", 201), ("other", 201), ("third", 403)] {
        let body = json!({"id_token": token, "project": project});
        let answer = ask(&world, Method::POST, &body).await;
        assert_eq!(answer.status.as_u16(), status, "{project}");
    }
    world
        .post("/v1/projects/other/suspend", json!({"reason": "unpaid"}))
        .await;
    let body = json!({"id_token": token, "project": "other"});
    let answer = ask(&world, Method::POST, &body).await;
    assert_eq!(answer.refusal(), "project_suspended");
}

#[tokio::test]
async fn other_settings_end_what_was_given_and_what_that_made() {
    let issuer = TestIssuer::start().await;
    let directory = tempfile::tempdir().unwrap();
    let place = || Some(directory.path().to_owned());
    let first = world_with(&issuer, &json!({}), place()).await;
    let key = key_of(&first, &in_group(&issuer, "owners")).await;
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("http://{}/v1/me/tokens", first.address))
        .header("authorization", format!("Bearer {key}"))
        .body(Body::empty())
        .unwrap();
    let made = first.send(request).await.json();
    let child = made["token"].as_str().unwrap().to_owned();
    for key in [&key, &child] {
        assert_eq!(with_key(&first, key, Method::GET, "/v1/me").await, 200);
    }
    drop(first);

    let same = world_with(&issuer, &json!({}), place()).await;
    for key in [&key, &child] {
        assert_eq!(with_key(&same, key, Method::GET, "/v1/me").await, 200);
    }
    drop(same);

    let fewer = json!({"denied": ["subject-1"]});
    let other = world_with(&issuer, &fewer, place()).await;
    for key in [&key, &child] {
        assert_eq!(with_key(&other, key, Method::GET, "/v1/me").await, 401);
    }
    // In the database too, once a control plane has started over it.
    let digest = settings(&issuer, &fewer).digest();
    other
        .control
        .store
        .end_other_sign_ins(&digest, 1)
        .await
        .unwrap();
    drop(other);
    let back = world_with(&issuer, &json!({}), place()).await;
    for key in [&key, &child] {
        assert_eq!(with_key(&back, key, Method::GET, "/v1/me").await, 401);
    }
}

#[tokio::test]
async fn a_person_has_so_many_keys_and_the_oldest_ends() {
    let issuer = TestIssuer::start().await;
    let world = world(&issuer).await;
    let token = in_group(&issuer, "viewers");
    let mut keys = Vec::new();
    for _ in 0..18 {
        keys.push(key_of(&world, &token).await);
    }
    for _ in 18..30 {
        key_of(&world, &in_group(&issuer, "viewers")).await;
    }
    let refused = sign_in(&world, &token).await;
    assert_eq!(refused.refusal(), "rate_limited");
    for (index, key) in keys.iter().enumerate() {
        let status = with_key(&world, key, Method::GET, "/v1/me").await;
        let wanted = if index < 14 { 401 } else { 200 };
        assert_eq!(status, wanted, "{index}");
    }
}

/// Whoever has no key takes no more than the places for it, and nothing is read before.
#[tokio::test]
async fn those_who_never_send_their_token_shut_nobody_else_out() {
    let issuer = TestIssuer::start().await;
    let world = world(&issuer).await;
    let head = "POST /v1/sign-in HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                content-length: 100\r\n\r\n{";
    let mut silent = Vec::new();
    for _ in 0..40 {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        silent.push(stream);
    }
    let token = in_group(&issuer, "viewers");
    let is_full = async || sign_in(&world, &token).await.status == StatusCode::TOO_MANY_REQUESTS;
    eventually("all places are taken", is_full).await;
    assert_eq!(world.get("/v1/me").await.status, StatusCode::OK);
    // Their time is over soon.
    let is_let_in = async || sign_in(&world, &token).await.status == StatusCode::CREATED;
    eventually("somebody signs in", is_let_in).await;
}

#[tokio::test]
async fn links_end_with_the_settings_whatever_the_database_says() {
    let issuer = TestIssuer::start().await;
    let world = world(&issuer).await;
    let key = key_of(&world, &in_group(&issuer, "ml")).await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}/ports/80/links");
    assert_eq!(with_key(&world, &key, Method::POST, &path).await, 201);
    let sandbox = dayfly_types::SandboxId::parse(&id).unwrap();
    let links = async |more: &Value| {
        let digest = settings(&issuer, more).digest();
        let now = i64::try_from(dayfly_testkit::issuer::now() * 1000).unwrap();
        let store = &world.control.store;
        let found = store
            .port_links_for_visitor(&sandbox, 80, now, &digest)
            .await;
        found.unwrap().len()
    };
    assert_eq!(links(&json!({})).await, 1);
    assert_eq!(links(&json!({"denied": ["somebody"]})).await, 0);
}

#[tokio::test]
async fn without_the_setting_nobody_signs_in() {
    let issuer = TestIssuer::start().await;
    let world = World::start().await;
    for method in [Method::GET, Method::POST] {
        let body = json!({"id_token": in_group(&issuer, "owners")});
        let answer = ask(&world, method, &body).await;
        assert_eq!(answer.refusal(), "not_found");
    }
    let world = self::world(&issuer).await;
    let offer = ask(&world, Method::GET, &json!({})).await.json();
    assert_eq!(offer["issuer"], issuer.name());
    assert_eq!(offer["client_id"], CLIENT_ID);
    let wrong = ask(&world, Method::DELETE, &json!({})).await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
}
