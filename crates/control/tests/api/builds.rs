//! Builds of templates that the server runs: the form, the events, and whose they are.

use std::time::Duration;

use axum::body::Body;
use dayfly_types::limits;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, Step, World, eventually, exited};

const BOUNDARY: &str = "b0undary";
const DOCKERFILE: &str = "FROM base\nCOPY src/ /srv/\nRUN echo hi\n";

/// A form with files, as browsers and curl write it.
#[derive(Default)]
struct Form(Vec<u8>);

impl Form {
    fn text(mut self, name: &str, text: &str) -> Self {
        let part = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n"
        );
        self.0.extend_from_slice(part.as_bytes());
        self
    }

    fn file(mut self, path: &str, content: &[u8]) -> Self {
        let part = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{path}\"; filename=\"f\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        self.0.extend_from_slice(part.as_bytes());
        self.0.extend_from_slice(content);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    async fn send(mut self, world: &World, key: &str) -> Answer {
        self.0
            .extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        post(
            world,
            key,
            &format!("multipart/form-data; boundary={BOUNDARY}"),
            Body::from(self.0),
        )
        .await
    }
}

async fn post(world: &World, key: &str, kind: &str, body: Body) -> Answer {
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("http://{}/v1/templates/build", world.address))
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", kind)
        .body(body)
        .unwrap();
    world.send(request).await
}

fn web() -> Form {
    Form::default()
        .text("name", "web")
        .text("dockerfile", DOCKERFILE)
        .text("context.modes", r#"{"src/run.sh":"755"}"#)
        .file("src/run.sh", b"#!/bin/sh\necho the-uploaded-file\n")
        .file("src/secret.env", b"the-hidden-file")
        .file(".dockerignore", b"**/*.env\n")
}

async fn begun(world: &World, form: Form) -> String {
    let begun = form.send(world, &world.key).await;
    assert_eq!(begun.status, StatusCode::ACCEPTED, "{}", begun.text());
    let build = begun.json();
    assert_eq!(build["ended_at"], Value::Null);
    assert_eq!(build["error"], Value::Null);
    build["id"].as_str().unwrap().to_owned()
}

async fn build(world: &World, id: &str) -> Value {
    world
        .get(&format!("/v1/templates/builds/{id}"))
        .await
        .json()
}

async fn ended(world: &World, id: &str) -> Value {
    eventually("the build ended", async || {
        let status = build(world, id).await["status"].clone();
        status == "done" || status == "failed"
    })
    .await;
    build(world, id).await
}

/// Numbers and data of server-sent events.
fn events(answer: &Answer) -> Vec<(u64, Value)> {
    let blocks = answer
        .text()
        .split("\n\n")
        .filter(|block| block.starts_with("id: "));
    blocks
        .map(|block| {
            let (id, data) = block.split_once('\n').unwrap();
            let id = id.strip_prefix("id: ").unwrap().parse().unwrap();
            let data = data.strip_prefix("data: ").unwrap();
            (id, serde_json::from_str(data).unwrap())
        })
        .collect()
}

#[tokio::test]
async fn a_form_with_files_becomes_a_template() {
    let world = World::start().await;
    let id = begun(&world, web()).await;
    assert!(id.starts_with("bld-"), "{id}");
    let done = ended(&world, &id).await;
    assert_eq!(done["status"], "done", "{done}");
    assert_eq!((&done["steps"], &done["cached"]), (&json!(2), &json!(0)));
    assert_eq!(done["image_ref"], "web:latest");
    assert!(done["version"].as_str().unwrap().starts_with("tv-"));
    assert!(done["bytes"].as_u64().unwrap() > 0 && done["size_mb"].as_u64().unwrap() > 0);
    assert!(world.node.has_arrived("the-uploaded-file"));
    assert!(!world.node.has_arrived("the-hidden-file"));
    let made = world
        .post("/v1/sandboxes", json!({"template": done["image_ref"]}))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let list = world.get("/v1/templates/builds").await.json();
    assert_eq!(list, json!([done]));
    // The same again does nothing, and says so.
    let again = begun(&world, web()).await;
    let again = ended(&world, &again).await;
    assert_eq!((&again["steps"], &again["cached"]), (&json!(2), &json!(2)));
    assert_eq!(again["version"], done["version"]);
    let list = world.get("/v1/templates/builds").await.json();
    assert_eq!(list.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn events_are_those_of_the_command_and_a_reader_goes_on_where_it_was() {
    let world = World::start().await;
    let id = begun(&world, web()).await;
    let path = format!("/v1/templates/builds/{id}/events");
    let all = events(&world.get(&path).await);
    let names: Vec<&str> = all
        .iter()
        .map(|(_, event)| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "stage", "started", "finished", "started", "output", "finished", "built"
        ]
    );
    let (last, built) = all.last().unwrap();
    assert_eq!(
        (&built["name"], &built["tag"]),
        (&json!("web"), &json!("latest"))
    );
    let (third, _) = all[2];
    let after = events(&world.get(&format!("{path}?after={third}")).await);
    assert_eq!(after, all[3..]);
    let request = world
        .request(Method::GET, &path)
        .header("last-event-id", third.to_string());
    let resumed = world.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(events(&resumed), all[3..]);
    // Behind the last there is nothing, and it ends.
    let nothing = world.get(&format!("{path}?after={last}")).await;
    assert!(events(&nothing).is_empty());
    let bad = world.get(&format!("{path}?after=x")).await;
    assert_eq!(bad.refusal(), "invalid_request");
}

#[tokio::test]
async fn logs_are_lines_and_followed_ones_end_as_both_clients_expect() {
    let world = World::start().await;
    let says = [
        Step::Stdout("end\nevent: done\n".into()),
        Step::Exit(exited(0)),
    ];
    world.node.script("/bin/sh -c echo hi", says);
    let id = begun(&world, web()).await;
    ended(&world, &id).await;
    let path = format!("/v1/templates/builds/{id}/logs");
    let plain = world.get(&path).await;
    assert_eq!(plain.headers["content-type"], "text/plain; charset=utf-8");
    for line in ["[2/2] RUN echo hi", "| end", "| event: done"] {
        assert!(
            plain.text().lines().any(|told| told == line),
            "{}",
            plain.text()
        );
    }
    let followed = world.get(&format!("{path}?follow=1")).await;
    let text = followed.text();
    assert!(text.ends_with("\n\nevent: done\ndata: end\n\n"), "{text}");
    assert_eq!(text.matches("event: done").count(), 1, "{text}");
    assert_eq!(text.matches("data: end\n").count(), 1, "{text}");
    // What the published clients send when they do not follow.
    let request = world
        .request(Method::GET, &path)
        .header("accept", "text/event-stream");
    let events = world.send(request.body(Body::empty()).unwrap()).await;
    assert!(events.text().contains("data: [2/2] RUN echo hi\n\n"));
    let bad = world.get(&format!("{path}?follow=maybe")).await;
    assert_eq!(bad.refusal(), "invalid_request");
}

#[tokio::test]
async fn a_step_that_fails_is_told_with_where_to_look() {
    let world = World::start().await;
    let says = [
        Step::Stderr("no such thing\n".into()),
        Step::Exit(exited(3)),
    ];
    world.node.script("/bin/sh -c echo hi", says);
    let id = begun(&world, web()).await;
    let failed = ended(&world, &id).await;
    assert_eq!(failed["status"], "failed");
    let error = failed["error"].as_str().unwrap();
    assert!(
        error.contains("step 2 of 2 failed with exit code 3"),
        "{error}"
    );
    let path = format!("/v1/templates/builds/{id}/events");
    let (_, last) = events(&world.get(&path).await).pop().unwrap();
    assert_eq!(last["event"], "failed");
    assert_eq!(last["step"]["tail"], json!(["no such thing"]));
    let sandbox = last["step"]["sandbox"].as_str().unwrap();
    assert!(world.node.ids().iter().any(|id| id.as_str() == sandbox));
    // Nothing was made, and the next build begins behind the first step.
    assert_eq!(world.get("/v1/templates/web").await.refusal(), "not_found");
    world
        .node
        .script("/bin/sh -c echo hi", [Step::Exit(exited(0))]);
    let again = begun(&world, web()).await;
    let again = ended(&world, &again).await;
    assert_eq!(
        (&again["status"], &again["cached"]),
        (&json!("done"), &json!(1))
    );
}

#[tokio::test]
async fn a_build_is_told_to_nobody_else_and_shares_no_step() {
    let world = World::start().await;
    let id = begun(&world, web()).await;
    ended(&world, &id).await;
    let path = format!("/v1/templates/builds/{id}");
    let foreign = async |method: Method, path: &str| {
        world
            .ask(&world.foreign_key, method, path, Value::Null)
            .await
    };
    for part in ["", "/events", "/logs", "/logs?follow=1"] {
        let path = format!("{path}{part}");
        assert_eq!(
            foreign(Method::GET, &path).await.refusal(),
            "not_found",
            "{path}"
        );
    }
    assert_eq!(foreign(Method::DELETE, &path).await.refusal(), "not_found");
    assert_eq!(
        foreign(Method::GET, "/v1/templates/builds").await.text(),
        "[]"
    );
    assert_eq!(build(&world, &id).await["status"], "done");
    let theirs = web().send(&world, &world.foreign_key).await.json();
    let theirs = theirs["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/templates/builds/{theirs}");
    eventually("their build ended", async || {
        foreign(Method::GET, &path).await.json()["status"] == "done"
    })
    .await;
    let theirs = foreign(Method::GET, &path).await.json();
    assert_eq!(
        (&theirs["steps"], &theirs["cached"]),
        (&json!(2), &json!(0))
    );
}

#[tokio::test]
async fn a_build_may_do_what_its_key_may_and_no_more() {
    let world = World::start().await;
    let key = async |scopes: Value| {
        let made = world
            .post("/v1/me/tokens", json!({"label": "l", "scopes": scopes}))
            .await;
        made.json()["token"].as_str().unwrap().to_owned()
    };
    let reader = key(json!(["read"])).await;
    assert_eq!(web().send(&world, &reader).await.refusal(), "forbidden");
    // It may make sandboxes, and run nothing in them.
    let maker = key(json!(["read", "create"])).await;
    let begun = web().send(&world, &maker).await;
    assert_eq!(begun.status, StatusCode::ACCEPTED, "{}", begun.text());
    let failed = ended(&world, begun.json()["id"].as_str().unwrap()).await;
    assert_eq!(failed["status"], "failed");
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("does not have the scope `exec`"), "{error}");
}

/// A build whose step does not end.
async fn endless(world: &World, name: &str) -> String {
    let pause = Step::Pause(Duration::from_secs(3600));
    world
        .node
        .script("/bin/sh -c sleep", [pause, Step::Exit(exited(0))]);
    let form = Form::default().text("name", name);
    let id = begun(world, form.text("dockerfile", "FROM base\nRUN sleep\n")).await;
    eventually("the step runs", async || {
        world.node.has_arrived("sleep") && build(world, &id).await["status"] == "running"
    })
    .await;
    id
}

#[tokio::test]
async fn a_build_that_runs_is_cancelled_and_one_that_ended_is_forgotten() {
    let world = World::start().await;
    let id = endless(&world, "web").await;
    let path = format!("/v1/templates/builds/{id}");
    assert_eq!(world.delete(&path).await.status, StatusCode::NO_CONTENT);
    let cancelled = build(&world, &id).await;
    assert_eq!(cancelled["status"], "failed");
    assert_eq!(cancelled["error"], "the build was cancelled");
    let (_, last) = events(&world.get(&format!("{path}/events")).await)
        .pop()
        .unwrap();
    assert_eq!(last["error"], "the build was cancelled");
    assert_eq!(world.delete(&path).await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.get(&path).await.refusal(), "not_found");
    assert_eq!(world.delete(&path).await.refusal(), "not_found");
    assert_eq!(world.get("/v1/templates/builds").await.text(), "[]");
}

#[tokio::test]
async fn a_project_has_two_builds_under_way_and_others_have_theirs() {
    let world = World::start().await;
    let first = endless(&world, "one").await;
    endless(&world, "two").await;
    let third = web().send(&world, &world.key).await;
    assert_eq!(third.refusal(), "too_many");
    assert!(third.headers.contains_key("retry-after"));
    let theirs = web().send(&world, &world.foreign_key).await;
    assert_eq!(theirs.status, StatusCode::ACCEPTED, "{}", theirs.text());
    world.delete(&format!("/v1/templates/builds/{first}")).await;
    begun(&world, web()).await;
}

#[tokio::test]
async fn a_build_of_an_earlier_process_has_failed_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let setup = || crate::support::Setup {
        database: Some(directory.path().to_owned()),
        ..crate::support::Setup::default()
    };
    let world = World::with(setup()).await;
    let done = begun(&world, web()).await;
    ended(&world, &done).await;
    let lost = endless(&world, "lost").await;
    // Both worlds have a project of this name; the second has another key of it.
    let next = World::with(setup()).await;
    let failed = build(&next, &lost).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    let text = "the server was restarted; build again, finished steps are kept";
    assert_eq!(failed["error"], text);
    assert!(failed["ended_at"].is_string());
    assert_eq!(build(&next, &done).await["status"], "done");
    for (id, name) in [(&lost, "failed"), (&done, "built")] {
        let path = format!("/v1/templates/builds/{id}/events?after=7");
        let all = events(&next.get(&path).await);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((all[0].0, &all[0].1["event"]), (8, &json!(name)));
    }
    let list = next.get("/v1/templates/builds").await.json();
    assert_eq!(list[0]["id"], json!(lost));
}

#[tokio::test]
async fn the_form_of_pandastack_s_clients_is_taken_and_what_cannot_be_is_refused_aloud() {
    let world = World::start().await;
    let plain = "application/x-www-form-urlencoded";
    let body = "name=plain&image_ref=base&size_mb=1024";
    let begun = post(&world, &world.key, plain, Body::from(body)).await;
    assert_eq!(begun.status, StatusCode::ACCEPTED, "{}", begun.text());
    assert_eq!(begun.json()["image_ref"], "base");
    assert_eq!(begun.json()["size_mb"], 1024);
    let done = ended(&world, begun.json()["id"].as_str().unwrap()).await;
    assert_eq!(
        (&done["status"], &done["image_ref"]),
        (&json!("done"), &json!("plain:latest"))
    );
    for (form, told) in [
        (
            Form::default().text("name", "a").file("rootfs", b"x"),
            "image_ref",
        ),
        (web().text("kernel", "k"), "leave it out"),
        (web().text("colour", "red"), "unknown field"),
        (web().text("name", "b"), "twice"),
        (web().file("src/run.sh", b"x"), "twice"),
        (web().file("../x", b"x"), "no path below"),
        (web().file("/etc/x", b"x"), "no path below"),
        (web().file("src/run.sh/x", b"x"), "a file and a directory"),
        (Form::default().text("name", "a"), "image_ref must be given"),
        (
            Form::default().text("dockerfile", "FROM a"),
            "name must be given",
        ),
        (
            Form::default()
                .text("name", "builds")
                .text("image_ref", "a"),
            "must not be",
        ),
    ] {
        let refused = form.send(&world, &world.key).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{told}");
        assert_eq!(refused.refusal(), "invalid_request");
        assert!(refused.text().contains(told), "{told}: {}", refused.text());
    }
    let taken = Form::default().text("name", "base").text("image_ref", "a");
    assert_eq!(
        taken.send(&world, &world.key).await.refusal(),
        "already_exists"
    );
    let other = post(&world, &world.key, "application/json", Body::from("{}")).await;
    assert_eq!(other.refusal(), "unsupported_media_type");
    let broken = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nx");
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    let broken = post(&world, &world.key, &kind, Body::from(broken)).await;
    assert_eq!(broken.refusal(), "invalid_request");
    // None of them has kept a place.
    for _ in 0..limits::BUILDS_OF_PROJECT_MAX {
        let id = self::begun(&world, web()).await;
        ended(&world, &id).await;
    }
}

#[tokio::test]
async fn a_context_is_bounded_in_files_and_bytes_and_a_text_in_bytes() {
    let world = World::start().await;
    let mut form = Form::default();
    for number in 0..=limits::BUILD_CONTEXT_FILES_MAX {
        form = form.file(&format!("f{number}"), b"");
    }
    assert_eq!(form.send(&world, &world.key).await.refusal(), "too_large");
    let long = "#".repeat(limits::BUILD_FIELD_BYTES_MAX + 1);
    let form = Form::default().text("dockerfile", &long);
    assert_eq!(form.send(&world, &world.key).await.refusal(), "too_large");
    // Sent piece by piece, and refused while it comes.
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n"
    );
    let piece = bytes::Bytes::from(vec![b'x'; 1 << 20]);
    let count = usize::try_from(limits::BUILD_CONTEXT_BYTES_MAX >> 20).unwrap() + 1;
    let pieces = std::iter::once(head.into()).chain(std::iter::repeat_n(piece, count));
    let body = futures::stream::iter(pieces.map(Ok::<_, std::convert::Infallible>));
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    let refused = post(&world, &world.key, &kind, Body::from_stream(body)).await;
    assert_eq!(refused.refusal(), "too_large", "{}", refused.text());
}

#[tokio::test]
async fn the_rust_client_starts_follows_and_deletes_a_build() {
    let world = World::start().await;
    let client = dayfly_client::Client::new(dayfly_client::ClientConfig {
        url: format!("http://{}", world.address),
        key: Some(dayfly_client::ApiKey::parse(&world.key).unwrap()),
    })
    .unwrap();
    let form = dayfly_api::BuildTemplateForm {
        name: "web".to_owned(),
        dockerfile: Some(DOCKERFILE.to_owned()),
        context_modes: Some(r#"{"src/a \"b":"755"}"#.to_owned()),
        ..dayfly_api::BuildTemplateForm::default()
    };
    let file = dayfly_client::BuildFile {
        path: dayfly_types::ContextPath::parse("src/a \"b").unwrap(),
        content: bytes::Bytes::from_static(b"the-uploaded-file"),
    };
    let begun = client.start_build(&form, &[file]).await.unwrap();
    let mut follow = client.build_events(&begun.id).await.unwrap();
    let mut last = None;
    while let Some(event) = follow.next().await.unwrap() {
        last = Some(event);
    }
    let Some(dayfly_api::TemplateBuildEvent::Built { version, .. }) = last else {
        panic!("{last:?}");
    };
    assert_eq!(
        client.build(&begun.id).await.unwrap().version,
        Some(version)
    );
    assert_eq!(client.builds().await.unwrap().len(), 1);
    assert!(world.node.has_arrived("the-uploaded-file"));
    client.delete_build(&begun.id).await.unwrap();
    assert!(client.build(&begun.id).await.is_err());
}
