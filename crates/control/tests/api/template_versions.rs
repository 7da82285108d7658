//! Templates of projects: images of containers, versions and tags.

use dayfly_node_api::BakeState;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Setup, World, eventually, template};

async fn snapshot(world: &World) -> String {
    let sandbox = world.create().await;
    let path = format!("/v1/sandboxes/{sandbox}/snapshots");
    let taken = world.post(&path, json!({})).await;
    assert_eq!(taken.status, StatusCode::CREATED, "{}", taken.text());
    taken.json()["id"].as_str().unwrap().to_owned()
}

async fn version(world: &World, name: &str) -> String {
    let from = snapshot(world).await;
    let body = json!({"name": name, "from_snapshot": from, "entry_point": ["/serve"],
        "user": "1000:1000", "directory": "/srv", "env": {"A": "b"},
        "health_check": {"command": "true", "retries": 2},
        "provenance": {"from": ["sha256:0"]}});
    let made = world.post("/v1/templates", body).await;
    assert_eq!(made.status, StatusCode::ACCEPTED, "{}", made.text());
    assert_eq!(made.json()["provenance"], json!({"from": ["sha256:0"]}));
    assert_eq!(made.json()["tags"], json!([]));
    made.json()["id"].as_str().unwrap().to_owned()
}

async fn tag(world: &World, name: &str, tag: &str, version: &str) {
    let path = format!("/v1/templates/{name}/tags/{tag}");
    let set = world.put(&path, json!({"version": version})).await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.text());
}

#[tokio::test]
async fn a_tag_means_a_version_until_it_means_another() {
    let world = World::start().await;
    let (first, second) = (version(&world, "web").await, version(&world, "web").await);
    let create = async |template: String| {
        world
            .post("/v1/sandboxes", json!({"template": template}))
            .await
    };
    assert_eq!(create("web".to_owned()).await.refusal(), "not_found");
    tag(&world, "web", "latest", &second).await;
    tag(&world, "web", "1.0", &first).await;
    for name in [
        "web".to_owned(),
        "web:1.0".to_owned(),
        format!("web@{first}"),
    ] {
        let made = create(name.clone()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        assert_eq!(made.json()["template"], name);
    }
    let made_from = |sandbox: &str| world.node.template_of(sandbox);
    let newest = create("web".to_owned()).await.json();
    tag(&world, "web", "latest", &first).await;
    let back = create("web".to_owned()).await.json();
    let (newest, back) = (newest["id"].as_str().unwrap(), back["id"].as_str().unwrap());
    assert_eq!(made_from(newest), format!("built.{}", &second[3..]));
    assert_eq!(made_from(back), format!("built.{}", &first[3..]));
    let list = world.get("/v1/templates/web/versions").await.json();
    assert_eq!(list["items"][0]["id"], second);
    assert_eq!(list["items"][1]["tags"], json!(["1.0", "latest"]));
    let shown = world.get("/v1/templates/web/versions/1.0").await.json();
    assert_eq!(shown["id"], first);
    // What the node calls it is nobody's name.
    let inner = format!("built.{}", &first[3..]);
    assert_eq!(create(inner.clone()).await.refusal(), "not_found");
    assert_eq!(
        world.get(&format!("/v1/templates/{inner}")).await.refusal(),
        "not_found"
    );
    let names = world.get("/v1/templates").await.json();
    let names: Vec<&str> = names
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"web") && !names.iter().any(|name| name.contains('.')),
        "{names:?}"
    );
}

#[tokio::test]
async fn a_version_goes_when_no_tag_means_it_and_a_template_with_all_of_it() {
    let world = World::start().await;
    let id = version(&world, "web").await;
    tag(&world, "web", "latest", &id).await;
    let path = format!("/v1/templates/web/versions/{id}");
    assert_eq!(world.delete(&path).await.refusal(), "wrong_state");
    for _ in 0..2 {
        let gone = world.delete("/v1/templates/web/tags/latest").await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
    }
    for _ in 0..2 {
        assert_eq!(world.delete(&path).await.status, StatusCode::NO_CONTENT);
    }
    assert_eq!(
        world.get("/v1/templates/web/versions").await.refusal(),
        "not_found"
    );
    let id = version(&world, "web").await;
    tag(&world, "web", "latest", &id).await;
    for _ in 0..2 {
        let gone = world.delete("/v1/templates/web").await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
    }
    assert_eq!(world.get("/v1/templates/web").await.refusal(), "not_found");
    let left = world.node.template_names();
    assert!(left.iter().all(|name| !name.contains('.')), "{left:?}");
}

#[tokio::test]
async fn another_project_neither_sees_nor_uses_nor_changes_them() {
    let world = World::start().await;
    let id = version(&world, "web").await;
    tag(&world, "web", "latest", &id).await;
    let foreign = async |method: Method, path: &str, body: Value| {
        world.ask(&world.foreign_key, method, path, body).await
    };
    let by_version = format!("web@{id}");
    for template in ["web", "web:latest", &by_version] {
        let body = json!({"template": template});
        let refused = foreign(Method::POST, "/v1/sandboxes", body).await;
        assert_eq!(refused.refusal(), "not_found");
    }
    for path in ["/v1/templates/web", "/v1/templates/web/versions"] {
        assert_eq!(
            foreign(Method::GET, path, Value::Null).await.refusal(),
            "not_found"
        );
    }
    let body = json!({"version": id});
    let stolen = foreign(Method::PUT, "/v1/templates/web/tags/mine", body).await;
    assert_eq!(stolen.refusal(), "not_found");
    let path = format!("/v1/templates/web/versions/{id}");
    foreign(Method::DELETE, &path, Value::Null).await;
    foreign(Method::DELETE, "/v1/templates/web/tags/latest", Value::Null).await;
    foreign(Method::DELETE, "/v1/templates/web", Value::Null).await;
    let shown = world.get("/v1/templates/web/versions").await.json();
    assert_eq!(shown["items"][0]["tags"], json!(["latest"]));
    let from = snapshot(&world).await;
    let body = json!({"name": "mine", "from_snapshot": from});
    let refused = foreign(Method::POST, "/v1/templates", body).await;
    assert_eq!(refused.refusal(), "not_found");
}

#[tokio::test]
async fn an_image_is_ordered_once_and_a_create_waits_for_it() {
    let world = World::start().await;
    for image in ["debian:12", "docker.io/library/debian:12"] {
        let ensured = world
            .post("/v1/templates/images", json!({"image": image}))
            .await;
        assert_eq!(ensured.status, StatusCode::OK, "{}", ensured.text());
        assert_eq!(ensured.json()["image"], "docker.io/library/debian:12");
    }
    let ordered = || {
        let names = world.node.template_names();
        names
            .into_iter()
            .filter(|name| name.starts_with("image."))
            .collect::<Vec<_>>()
    };
    assert_eq!(ordered().len(), 1);
    let made = world
        .post("/v1/sandboxes", json!({"image": "debian:12"}))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    assert_eq!(made.json()["template"], "docker.io/library/debian:12");
    let mut baking = template(&ordered()[0], BakeState::Waiting);
    baking.is_usable = false;
    world.node.set_templates(vec![baking]);
    let refused = world
        .post("/v1/sandboxes", json!({"image": "debian:12"}))
        .await;
    assert_eq!(refused.refusal(), "template_baking");
    for body in [
        json!({"image": "a b"}),
        json!({"image": ""}),
        json!({"image": "debian:12", "template": "base"}),
    ] {
        let refused = world.post("/v1/sandboxes", body).await;
        assert_eq!(refused.refusal(), "invalid_request");
    }
}

#[tokio::test]
async fn what_cannot_be_a_template_is_refused() {
    let world = World::start().await;
    let from = snapshot(&world).await;
    for (body, code) in [
        (
            json!({"name": "base", "from_snapshot": from}),
            "already_exists",
        ),
        (
            json!({"name": "a.b", "from_snapshot": from}),
            "invalid_request",
        ),
        (
            json!({"name": "images", "from_snapshot": from}),
            "invalid_request",
        ),
        (
            json!({"name": "web", "from_snapshot": "snap-none"}),
            "not_found",
        ),
        (
            json!({"name": "web", "from_snapshot": from, "memory_mb": 1}),
            "invalid_request",
        ),
        (
            json!({"name": "web", "from_snapshot": from, "user": "a b"}),
            "invalid_request",
        ),
        (
            json!({"name": "web", "from_snapshot": from, "directory": "srv"}),
            "invalid_request",
        ),
        (
            json!({"name": "web", "from_snapshot": from, "health_check": {"command": []}}),
            "invalid_request",
        ),
        (
            json!({"name": "web", "from_snapshot": from, "provenance": {"a": "x".repeat(70_000)}}),
            "too_large",
        ),
    ] {
        let refused = world.post("/v1/templates", body.clone()).await;
        assert_eq!(refused.refusal(), code, "{body}");
    }
    assert_eq!(
        world.get("/v1/templates/web/versions").await.refusal(),
        "not_found"
    );
}

#[tokio::test]
async fn a_project_has_few_bakes_at_once() {
    let world = World::start().await;
    let mut waiting = Vec::new();
    for number in 0..4 {
        let image = format!("debian:{number}");
        world
            .post("/v1/templates/images", json!({"image": image}))
            .await;
    }
    for name in world.node.template_names() {
        let state = if name.starts_with("image.") {
            BakeState::Waiting
        } else {
            BakeState::Ready
        };
        waiting.push(template(&name, state));
    }
    world.node.set_templates(waiting);
    let refused = world
        .post("/v1/templates/images", json!({"image": "debian:9"}))
        .await;
    assert_eq!(refused.refusal(), "too_many");
    let known = world
        .post("/v1/templates/images", json!({"image": "debian:1"}))
        .await;
    assert_eq!(known.status, StatusCode::OK);
}

#[tokio::test]
async fn a_template_that_the_project_could_not_run_is_not_made() {
    let world = World::start().await;
    let limits = json!({"memory_mb": 1024, "vcpus": 2});
    let made = world
        .post("/v1/projects", json!({"id": "small", "limits": limits}))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let token = world.post("/v1/projects/small/tokens", json!({})).await;
    let key = token.json()["token"].as_str().unwrap().to_owned();
    let ensure = async |body: Value| {
        world
            .ask(&key, Method::POST, "/v1/templates/images", body)
            .await
    };
    for body in [
        json!({"image": "debian:12", "memory_mb": 2048}),
        json!({"image": "debian:12", "cpu": 4}),
    ] {
        assert_eq!(ensure(body).await.refusal(), "quota_exceeded");
    }
    let fits = ensure(json!({"image": "debian:12", "memory_mb": 1024})).await;
    assert_eq!(fits.status, StatusCode::OK, "{}", fits.text());
    let sandbox = world
        .ask(&key, Method::POST, "/v1/sandboxes", json!({}))
        .await;
    let id = sandbox.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/sandboxes/{id}/snapshots");
    let taken = world.ask(&key, Method::POST, &path, json!({})).await;
    let from = taken.json()["id"].as_str().unwrap().to_owned();
    let body = json!({"name": "web", "from_snapshot": from, "memory_mb": 1024});
    // The sandbox has half of it.
    let refused = world.ask(&key, Method::POST, "/v1/templates", body).await;
    assert_eq!(refused.refusal(), "quota_exceeded");
    let body = json!({"name": "web", "from_snapshot": from});
    let made = world.ask(&key, Method::POST, "/v1/templates", body).await;
    assert_eq!(made.status, StatusCode::ACCEPTED, "{}", made.text());
}

#[tokio::test]
async fn a_failure_is_told_to_whoever_waits_for_it() {
    let world = World::start().await;
    let id = version(&world, "web").await;
    tag(&world, "web", "latest", &id).await;
    let image = json!({"image": "debian:12"});
    world.post("/v1/templates/images", image.clone()).await;
    let failed = |name: String| {
        let reason = "no".to_owned();
        template(&name, BakeState::Failed { reason })
    };
    let names = world.node.template_names().into_iter();
    let ordered = names.filter(|name| name.contains('.'));
    world.node.set_templates(ordered.map(failed).collect());
    for _ in 0..3 {
        let told = world.post("/v1/templates/images", image.clone()).await;
        assert_eq!(told.json()["state"], "failed", "{}", told.text());
        for body in [json!({"template": "web"}), image.clone()] {
            let refused = world.post("/v1/sandboxes", body).await;
            assert_eq!(refused.refusal(), "template_failed");
        }
    }
}

#[tokio::test]
async fn a_version_is_made_of_a_snapshot_whose_template_is_gone() {
    let world = World::start().await;
    let from = snapshot(&world).await;
    world.node.set_templates(Vec::new());
    let body = json!({"name": "web", "from_snapshot": from});
    let made = world.post("/v1/templates", body).await;
    assert_eq!(made.status, StatusCode::ACCEPTED, "{}", made.text());
    assert_eq!(made.json()["memory_mb"], 512);
}

#[tokio::test]
async fn what_is_said_of_the_use_of_a_template_is_short() {
    let world = World::start().await;
    let from = snapshot(&world).await;
    let with = |length: usize| {
        json!({"name": "web", "from_snapshot": from,
        "entry_point": ["/serve", "x".repeat(length)]})
    };
    let refused = world.post("/v1/templates", with(65_536)).await;
    assert_eq!(refused.refusal(), "too_large");
    let made = world.post("/v1/templates", with(32_768)).await;
    assert_eq!(made.status, StatusCode::ACCEPTED, "{}", made.text());
}

#[tokio::test]
async fn a_template_that_no_project_has_is_given_up_after_a_while() {
    let world = World::with(Setup::quick()).await;
    let id = version(&world, "web").await;
    let mine = format!("built.{}", &id[3..]);
    let mut templates: Vec<_> = world.node.template_names();
    templates.push("image.00".to_owned());
    let ready = templates
        .iter()
        .map(|name| template(name, BakeState::Ready));
    world.node.set_templates(ready.collect());
    eventually("the stray is given up", async || {
        let names = world.node.template_names();
        !names.contains(&"image.00".to_owned())
    })
    .await;
    let names = world.node.template_names();
    assert!(names.contains(&mine), "{names:?}");
    assert!(names.contains(&"base".to_owned()), "{names:?}");
}
