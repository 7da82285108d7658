//! What an operator sees and does in other projects, and that nobody else does.

use std::collections::BTreeSet;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::events;
use crate::support::{Setup, World};

/// What may be asked about other projects, and whether about all.
const VIEWS: [(&str, bool); 7] = [
    ("/v1/sandboxes", true),
    ("/v1/usage/sandboxes", true),
    ("/v1/usage/hours", true),
    ("/v1/audit", true),
    ("/v1/me/tokens", true),
    ("/v1/events", true),
    ("/v1/usage", false),
];

/// A project with a sandbox in it, and a key with each scope that is no operator's.
pub(crate) struct Team {
    pub(crate) name: &'static str,
    pub(crate) key: String,
    pub(crate) sandbox: String,
}

pub(crate) async fn token(world: &World, project: &str, wish: Value) -> String {
    let path = format!("/v1/projects/{project}/tokens");
    let made = world.post(&path, wish).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    made.json()["token"].as_str().unwrap().to_owned()
}

pub(crate) async fn team(world: &World, name: &'static str) -> Team {
    let made = world.post("/v1/projects", json!({"id": name})).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let key = token(world, name, json!({"label": "first"})).await;
    let wish = json!({"name": "notebook"});
    let created = world.ask(&key, Method::POST, "/v1/sandboxes", wish).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
    let sandbox = created.json()["id"].as_str().unwrap().to_owned();
    Team { name, key, sandbox }
}

/// Where two refusals of the same call are two entries.
async fn world() -> World {
    let mut setup = Setup::default();
    setup.reconcile.audit.repeats_within = Duration::ZERO;
    World::with(setup).await
}

pub(crate) async fn record(world: &World, key: &str) -> Vec<Value> {
    let read = world.ask(key, Method::GET, "/v1/audit?limit=1000", json!({}));
    read.await.json()["items"].as_array().unwrap().clone()
}

pub(crate) fn prefix(key: &str) -> &str {
    &key[.."dfk_".len() + 8]
}

/// Every call that an operator may make beyond its project, as (method, path).
fn calls(other: &Team) -> Vec<(Method, String)> {
    let name = other.name;
    let mut calls = vec![
        (Method::GET, "/v1/usage/projects".to_owned()),
        (
            Method::DELETE,
            format!("/v1/me/tokens/{}?project={name}", prefix(&other.key)),
        ),
        (
            Method::DELETE,
            format!("/v1/sandboxes/{}?project={name}", other.sandbox),
        ),
        (
            Method::GET,
            format!("/v1/sandboxes/{}/metrics?project={name}", other.sandbox),
        ),
    ];
    for (path, has_all) in VIEWS {
        calls.push((Method::GET, format!("{path}?project={name}")));
        if has_all {
            calls.push((Method::GET, format!("{path}?all_projects=true")));
        }
    }
    calls
}

#[tokio::test]
async fn nobody_but_an_operator_leaves_a_project() {
    let world = world().await;
    let (own, other) = (team(&world, "team-a").await, team(&world, "team-b").await);
    let mut refused = BTreeSet::new();
    for scope in ["read", "create", "exec", "admin"] {
        let key = token(&world, own.name, json!({"scopes": [scope]})).await;
        for (method, path) in calls(&other) {
            let answer = world.ask(&key, method.clone(), &path, Value::Null).await;
            let what = format!("{scope}: {method} {path}: {}", answer.text());
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{what}");
            assert_eq!(answer.refusal(), "forbidden", "{what}");
            let id = answer.headers["x-request-id"].to_str().unwrap();
            refused.insert(id.to_owned());
        }
    }
    let bound = json!({"scopes": ["operator"], "sandbox_id": own.sandbox});
    let bound = token(&world, own.name, bound).await;
    for (method, path) in calls(&other) {
        let answer = world.ask(&bound, method.clone(), &path, Value::Null).await;
        let is_refused = matches!(answer.status, StatusCode::FORBIDDEN | StatusCode::NOT_FOUND);
        assert!(is_refused, "{method} {path}: {}", answer.text());
    }
    // By itself, because a second refusal of the same path would only be counted.
    let curious = token(&world, own.name, json!({"scopes": ["read"]})).await;
    let path = "/v1/sandboxes?all_projects=true";
    let answer = world.ask(&curious, Method::GET, path, Value::Null).await;
    assert_eq!(answer.refusal(), "forbidden");
    let recorded = record(&world, &own.key).await;
    let ids: BTreeSet<String> = recorded
        .iter()
        .map(|entry| entry["request_id"].as_str().unwrap().to_owned())
        .collect();
    assert!(refused.is_subset(&ids), "every refusal is in the record");
    let says = |name: &str, value: &str| {
        let fits = |entry: &&Value| entry["status"] == 403 && entry["detail"][name] == value;
        recorded.iter().filter(fits).count()
    };
    assert!(says("project", "team-b") >= 8, "{recorded:#?}");
    assert!(says("all_projects", "true") >= 1, "{recorded:#?}");
    let theirs = record(&world, &other.key).await;
    assert!(theirs.iter().all(|entry| entry["status"] != 403));
}

#[tokio::test]
async fn an_operator_sees_one_project_or_all() {
    let world = world().await;
    let (one, two) = (team(&world, "team-a").await, team(&world, "team-b").await);
    for (path, has_all) in VIEWS.into_iter().filter(|(path, _)| *path != "/v1/events") {
        let seen = world.get(&format!("{path}?project=team-a")).await;
        assert_eq!(seen.status, StatusCode::OK, "{path}: {}", seen.text());
        assert!(!seen.text().contains("team-b"), "{path}");
        if has_all {
            let seen = world.get(&format!("{path}?all_projects=true")).await.json();
            let of = |name: &str| {
                let items = seen["items"].as_array().unwrap().iter();
                items.filter(|item| item["project"] == name).count()
            };
            assert!(of("team-a") > 0 && of("team-b") > 0, "{path}: {seen}");
        }
    }
    let list = world.get("/v1/sandboxes?project=team-b").await.json();
    assert_eq!(list["items"][0]["id"], two.sandbox.as_str());
    let usage = world.get("/v1/usage?project=team-a").await.json();
    assert_eq!(usage["sandboxes"], 1);
    let usages = world.get("/v1/usage/projects").await.json();
    let items = usages["items"].as_array().unwrap();
    let of_one = items.iter().find(|item| item["project"] == "team-a");
    assert_eq!(of_one.unwrap()["sandboxes"], 1);
    // What is one's own names no project.
    let own = world.ask(&one.key, Method::GET, "/v1/sandboxes", Value::Null);
    assert_eq!(own.await.json()["items"][0].get("project"), None);
    for (path, code) in [
        ("/v1/sandboxes?project=nobody", "not_found"),
        (
            "/v1/sandboxes?project=team-a&all_projects=1",
            "invalid_request",
        ),
        ("/v1/audit?all_projects=1&cursor=7", "invalid_request"),
        ("/v1/audit?cursor=7.team-a.1", "invalid_request"),
        // Who sends it would take the answer for another project's.
        ("/v1/snapshots?project=team-a", "invalid_request"),
        ("/v1/volumes?all_projects=true", "invalid_request"),
    ] {
        assert_eq!(world.get(path).await.refusal(), code, "{path}");
    }
}

/// Asks for page after page of two; gives what `name` is in each item.
async fn paged(world: &World, path: &str, name: &str) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let asked = format!("{path}?all_projects=true&limit=2{cursor}");
        let page = world.get(&asked).await.json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2, "{page}");
        found.extend(items.iter().map(|item| item[name].to_string()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

#[tokio::test]
async fn pages_over_all_projects_have_everything_once() {
    let world = world().await;
    for name in ["team-a", "team-b", "team-c"] {
        team(&world, name).await;
    }
    for (path, name, count) in [
        ("/v1/sandboxes", "id", 3),
        ("/v1/me/tokens", "prefix", 5),
        ("/v1/audit", "request_id", 9),
    ] {
        let whole = world.get(&format!("{path}?all_projects=true")).await.json();
        let whole = whole["items"].as_array().unwrap().iter();
        let whole: Vec<String> = whole.map(|item| item[name].to_string()).collect();
        assert!(whole.len() >= count, "{path}: {whole:?}");
        assert_eq!(paged(&world, path, name).await, whole, "{path}");
    }
}

#[tokio::test]
async fn events_of_all_projects_go_on_where_they_were() {
    let world = world().await;
    let (one, two) = (team(&world, "team-a").await, team(&world, "team-b").await);
    let from = async |after: &str, count| {
        let query = format!("?all_projects=true&after={after}");
        events::read(&world, &world.key, &query, count).await
    };
    let whole = from("0", 4).await;
    let ids: Vec<&str> = whole
        .iter()
        .map(|event| event["sandbox_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        [&one.sandbox, &one.sandbox, &two.sandbox, &two.sandbox]
    );
    assert_eq!(
        (&whole[0]["project"], &whole[3]["project"]),
        (&json!("team-a"), &json!("team-b"))
    );
    let later = from(whole[1]["cursor"].as_str().unwrap(), 2).await;
    assert_eq!(later, whole[2..]);
    let theirs = events::read(&world, &world.key, "?project=team-b&after=0", 2).await;
    assert!(
        theirs
            .iter()
            .all(|event| event["sandbox_id"] == two.sandbox.as_str())
    );
}

#[tokio::test]
async fn an_operator_ends_a_key_of_any_project_and_both_records_say_so() {
    let world = world().await;
    let one = team(&world, "team-a").await;
    let leaked = token(&world, one.name, json!({})).await;
    let me = async || {
        world
            .ask(&leaked, Method::GET, "/v1/me", Value::Null)
            .await
            .status
    };
    assert_eq!(me().await, StatusCode::OK);
    let elsewhere = world
        .delete(&format!("/v1/me/tokens/{}", prefix(&leaked)))
        .await;
    assert_eq!(elsewhere.refusal(), "not_found");
    let path = format!("/v1/me/tokens/{}?project=team-a", prefix(&leaked));
    let ended = world.delete(&path).await;
    assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.text());
    assert_eq!(me().await, StatusCode::UNAUTHORIZED);
    for key in [&world.key, &one.key] {
        let entries = record(&world, key).await;
        let fits = |entry: &&Value| entry["subject"] == prefix(&leaked) && entry["status"] == 204;
        let entry = entries.iter().find(fits).expect("an entry");
        assert_eq!(entry["detail"]["project"], "team-a");
        assert_eq!(entry["key_prefix"], prefix(&world.key));
    }
}

#[tokio::test]
async fn an_operator_deletes_a_sandbox_of_another_project_and_does_nothing_else_with_it() {
    let world = world().await;
    let one = team(&world, "team-a").await;
    let mut checked = 0;
    let document = serde_json::to_value(dayfly_control::openapi()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(rest) = path.strip_prefix("/v1/sandboxes/{id}") else {
            continue;
        };
        for method in item.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            if rest.is_empty() && method == Method::DELETE {
                continue;
            }
            let rest = rest.replace("{port}", "8080").replace("{exec_id}", "ex-1");
            let rest = rest.replace("{sid}", "ctx-1").replace("{link}", "pl-none");
            let rest = rest.replace("{prefix}", "dfk_zzzzzzzz");
            for query in ["project=team-a", "all_projects=true", "path=/tmp/a"] {
                // What it costs the host, as `usage/sandboxes` says of all.
                if rest == "/metrics" && query == "project=team-a" {
                    continue;
                }
                let path = format!("/v1/sandboxes/{}{rest}?{query}", one.sandbox);
                let answer = world
                    .ask(&world.key, method.clone(), &path, json!({}))
                    .await;
                let is_refused = matches!(answer.status.as_u16(), 400 | 404);
                // A link that is not there is ended, whoever asks.
                let is_nothing =
                    answer.status == StatusCode::NO_CONTENT && method == Method::DELETE;
                assert!(
                    is_refused || is_nothing,
                    "{method} {path}: {}",
                    answer.text()
                );
                checked += 1;
            }
        }
    }
    assert!(checked >= 120, "{checked}");
    let mine = world
        .post("/v1/sandboxes", json!({"name": "notebook"}))
        .await;
    assert_eq!(mine.status, StatusCode::CREATED, "{}", mine.text());
    // A name is one of the project that is named, not of the operator's own.
    let gone = world.delete("/v1/sandboxes/notebook?project=team-a").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text());
    let left = world.get("/v1/sandboxes?all_projects=true").await.json();
    let left: Vec<&Value> = left["items"].as_array().unwrap().iter().collect();
    assert_eq!((left.len(), &left[0]["id"]), (1, &mine.json()["id"]));
    let entries = record(&world, &one.key).await;
    let fits = |entry: &&Value| entry["subject"] == one.sandbox.as_str() && entry["status"] == 204;
    let entry = entries.iter().find(fits).expect("an entry");
    assert_eq!(entry["key_prefix"], prefix(&world.key));
}
