//! Sandboxes in other sizes than their template's.

use dayfly_node_api::{BakeState, TemplateReport};
use dayfly_types::{MemoryMib, TemplateSize, Vcpus};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{World, template, variant};

fn size(memory: u64, vcpus: u64) -> TemplateSize {
    TemplateSize {
        memory: MemoryMib::new(memory).unwrap(),
        vcpus: Vcpus::new(vcpus).unwrap(),
    }
}

fn base(variants: &[(TemplateSize, BakeState)]) -> Vec<TemplateReport> {
    let mut base = template("base", BakeState::Ready);
    let variants = variants.iter().cloned();
    base.variants = variants.map(|(size, state)| variant(size, state)).collect();
    vec![base]
}

#[tokio::test]
async fn the_first_create_of_a_size_has_it_baked_and_says_so_when_it_succeeds() {
    let world = World::start().await;
    let body = json!({"memory_mb": 1024, "cpu": 1.5});
    let refused = world.post("/v1/sandboxes", body.clone()).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.refusal(), "template_baking");
    assert_eq!(refused.json()["percent"], 0);
    assert!(refused.headers.contains_key("retry-after"));
    assert!(
        refused.text().contains("1024 MiB and 2 CPUs"),
        "{}",
        refused.text()
    );
    let asked = world.node.variant_requests();
    assert_eq!(asked[0].size, size(1024, 2));
    assert_eq!(
        asked[0].by.as_ref().map(ToString::to_string),
        Some("default".to_owned())
    );
    assert!(asked[0].is_awaited && !asked[0].renew);
    assert_eq!(world.node.ensure_calls(), 0);
    world
        .node
        .set_templates(base(&[(size(1024, 2), BakeState::Ready)]));
    let created = world.post("/v1/sandboxes", body).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
    let expected = json!({"cpu": 2, "memory_mb": 1024, "first_use": true, "bake_ms": 23_000});
    assert_eq!(created.json()["variant"], expected);
    let wanted = world.node.last_wanted().unwrap();
    assert_eq!(wanted.size, Some(size(1024, 2)));
    assert_eq!(wanted.cpu.map(u64::from), Some(1500));
    let path = format!("/v1/sandboxes/{}", created.json()["id"].as_str().unwrap());
    let live = world.get(&path).await.json();
    world.control.view.remove(&wanted.id);
    for shown in [live, world.get(&path).await.json()] {
        assert_eq!(
            (&shown["memory_mb"], &shown["cpu"]),
            (&json!(1024), &json!(2))
        );
        assert_eq!(shown["cpu_limit"], 1.5);
        assert_eq!(shown.get("variant"), None);
    }
    assert_eq!(
        world.node.variant_requests().len(),
        1,
        "it was ordered again"
    );
}

#[tokio::test]
async fn the_templates_own_size_is_no_variant() {
    let world = World::start().await;
    for body in [
        json!({"memory_mb": 512}),
        json!({"memory_mb": 512.0, "cpu": 1}),
        json!({"memory_mb": null, "cpu": 0.5}),
    ] {
        let created = world.post("/v1/sandboxes", body).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
        assert_eq!(created.json().get("variant"), None);
        assert_eq!(world.node.last_wanted().unwrap().size, None);
    }
    assert_eq!(world.node.variant_requests(), []);
}

#[tokio::test]
async fn sizes_that_do_not_fit_are_refused_with_what_does() {
    let world = World::start().await;
    for (body, field, says) in [
        (json!({"memory_mb": 384}), "memory_mb", "at least 512"),
        (json!({"memory_mb": 600}), "memory_mb", "multiple of 128"),
        (json!({"memory_mb": 64}), "memory_mb", "128"),
        (json!({"memory_mb": 131_072}), "memory_mb", "65536"),
        (json!({"memory_mb": 512.5}), "memory_mb", "whole number"),
        (json!({"memory_mb": "1024"}), "memory_mb", ""),
    ] {
        let refused = world.post("/v1/sandboxes", body).await;
        assert_eq!(refused.refusal(), "invalid_request", "{}", refused.text());
        let text = refused.text();
        assert!(text.contains(field) && text.contains(says), "{text}");
    }
    assert_eq!(world.node.variant_requests(), []);
}

#[tokio::test]
async fn a_failed_size_is_told_and_tried_again_by_a_bake() {
    let world = World::start().await;
    let reason = "no disk".to_owned();
    world
        .node
        .set_templates(base(&[(size(1024, 1), BakeState::Failed { reason })]));
    let refused = world
        .post("/v1/sandboxes", json!({"memory_mb": 1024}))
        .await;
    assert_eq!(refused.refusal(), "template_failed");
    let plain = world.post("/v1/sandboxes", json!({})).await;
    assert_eq!(plain.status, StatusCode::CREATED, "others are not harmed");
    assert_eq!(world.node.variant_requests(), []);
    let again = world
        .post("/v1/templates/base/bake", json!({"memory_mb": 1024}))
        .await;
    assert_eq!(again.status, StatusCode::ACCEPTED);
    assert_eq!(world.node.variant_requests().len(), 1);
}

#[tokio::test]
async fn a_bake_ahead_counts_for_its_project_unless_an_operator_asks() {
    let world = World::start().await;
    let accepted = world
        .post(
            "/v1/templates/base/bake",
            json!({"memory_mb": 2048, "cpu": 2}),
        )
        .await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.text());
    let shown = accepted.json();
    assert_eq!(shown["state"], "ready", "the template itself is as it was");
    let variants = shown["variants"].as_array().unwrap();
    assert_eq!(
        (&variants[0]["memory_mb"], &variants[0]["cpu"]),
        (&json!(2048), &json!(2))
    );
    assert_eq!(variants[0]["state"], "waiting");
    let token = world.post("/v1/me/tokens", json!({})).await.json();
    let key = token["token"].as_str().unwrap();
    let body = json!({"memory_mb": 4096});
    let accepted = world
        .ask(key, Method::POST, "/v1/templates/base/bake", body)
        .await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.text());
    let asked = world.node.variant_requests();
    assert!(
        asked[0].by.is_none() && asked[0].renew,
        "the first key is an operator's"
    );
    assert!(asked[1].by.is_some() && !asked[1].renew && !asked[1].is_awaited);
    for body in [
        json!({"memory_mb": 100}),
        json!({"cpu": 0}),
        json!({"disk_gb": 1}),
    ] {
        let refused = world.post("/v1/templates/base/bake", body).await;
        assert_eq!(
            refused.status,
            StatusCode::BAD_REQUEST,
            "{}",
            refused.text()
        );
    }
}

#[tokio::test]
async fn a_quota_counts_the_size_that_a_sandbox_has() {
    let world = World::start().await;
    world
        .node
        .set_templates(base(&[(size(4096, 2), BakeState::Ready)]));
    let limits = json!({"memory_mb": 4096 + 512, "vcpus": 3});
    let project = json!({"id": "small", "limits": limits});
    let made = world.post("/v1/projects", project).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let token = world
        .post("/v1/projects/small/tokens", json!({}))
        .await
        .json();
    let key = token["token"].as_str().unwrap();
    let create = |body: Value| world.ask(key, Method::POST, "/v1/sandboxes", body);
    let large = create(json!({"memory_mb": 4096, "cpu": 2})).await;
    assert_eq!(large.status, StatusCode::CREATED, "{}", large.text());
    assert_eq!(create(json!({})).await.status, StatusCode::CREATED);
    assert_eq!(create(json!({})).await.refusal(), "quota_exceeded");
}

#[tokio::test]
async fn a_snapshot_has_the_size_that_it_was_taken_with() {
    let world = World::start().await;
    world
        .node
        .set_templates(base(&[(size(1024, 2), BakeState::Ready)]));
    let source = world
        .post("/v1/sandboxes", json!({"memory_mb": 1024, "cpu": 2}))
        .await
        .json();
    let path = format!("/v1/sandboxes/{}/snapshots", source["id"].as_str().unwrap());
    let snapshot = world.post(&path, json!({})).await.json();
    let id = snapshot["id"].as_str().unwrap();
    for (more, status) in [
        (json!({}), StatusCode::CREATED),
        (json!({"memory_mb": 1024, "cpu": 1.5}), StatusCode::CREATED),
        (json!({"memory_mb": 2048}), StatusCode::BAD_REQUEST),
        (json!({"memory_mb": 512}), StatusCode::BAD_REQUEST),
        (json!({"cpu": 3}), StatusCode::BAD_REQUEST),
    ] {
        let mut body = more.clone();
        body["from_snapshot"] = json!(id);
        let answer = world.post("/v1/sandboxes", body).await;
        assert_eq!(answer.status, status, "{more}: {}", answer.text());
    }
    let usage = world.get("/v1/usage").await;
    assert!(usage.text().contains("3072"), "{}", usage.text());
}

/// Which the node would believe as well, and promise all of it.
#[tokio::test]
async fn a_host_without_shared_sandboxes_says_so_and_promises_all() {
    let world = World::start().await;
    let refused = world
        .post("/v1/sandboxes", json!({"class": "shared"}))
        .await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.refusal(), "invalid_request");
    assert!(
        refused.text().contains("memory_share"),
        "{}",
        refused.text()
    );
    assert_eq!(world.node.ensure_calls(), 0);
    for body in [json!({}), json!({"class": "reserved"})] {
        let created = world.post("/v1/sandboxes", body).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
        assert_eq!(created.json()["class"], "reserved");
        assert!(created.json().get("sleep_reason").is_none());
    }
    let unknown = world.post("/v1/sandboxes", json!({"class": "best"})).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
}
