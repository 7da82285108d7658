//! Lists: chosen, and in pages.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::World;

async fn make(world: &World, metadata: Value) -> String {
    let body = json!({"metadata": metadata});
    let made = world.post("/v1/sandboxes", body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    made.json()["id"].as_str().unwrap().to_owned()
}

fn ids(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn pages_together_are_the_whole_list_each_sandbox_once() {
    let world = World::start().await;
    let mut made = Vec::new();
    for number in 0..7 {
        made.push(make(&world, json!({"number": number.to_string()})).await);
    }
    let whole = world.get("/v1/sandboxes").await.json();
    assert_eq!(ids(&whole).len(), 7);
    assert!(whole.get("next_cursor").is_none(), "nobody asked for pages");
    let (mut seen, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let path = format!("/v1/sandboxes?limit=3&cursor={cursor}");
        let page = world.get(&path).await.json();
        assert!(ids(&page).len() <= 3);
        seen.extend(ids(&page));
        pages += 1;
        if pages == 1 {
            // One that is gone or new in between moves no other.
            world.delete(&format!("/v1/sandboxes/{}", made[0])).await;
        }
        let Some(next) = page["next_cursor"].as_str() else {
            break;
        };
        cursor = next.to_owned();
    }
    assert_eq!((seen, pages), (ids(&whole), 3));
}

#[tokio::test]
async fn a_list_has_what_was_asked_for() {
    let world = World::start().await;
    let first = make(&world, json!({"task": "7", "who": "a"})).await;
    let second = make(&world, json!({"task": "7", "who": "b"})).await;
    let asleep = make(&world, json!({})).await;
    let path = format!("/v1/sandboxes/{asleep}/hibernate");
    assert!(world.post(&path, json!({})).await.status.is_success());
    let found = async |query: &str| ids(&world.get(&format!("/v1/sandboxes?{query}")).await.json());
    let seven = "metadata=%7B%22task%22%3A%227%22%7D";
    assert_eq!(found(seven).await, [first, second.clone()]);
    let b = "metadata=%7B%22task%22%3A%227%22%2C%22who%22%3A%22b%22%7D";
    assert_eq!(found(b).await, [second]);
    assert_eq!(found("status=hibernated").await, [asleep]);
    assert_eq!(found("status=running&template=base").await.len(), 2);
    assert!(found("template=other").await.is_empty());
    // A page that is full has no next one when nothing else fits.
    let page = world.get(&format!("/v1/sandboxes?limit=2&{seven}")).await;
    assert!(page.json().get("next_cursor").is_none());
    let page = world.get(&format!("/v1/sandboxes?limit=1&{seven}")).await;
    assert!(page.json()["next_cursor"].is_string());
}

#[tokio::test]
async fn a_query_that_means_nothing_is_refused() {
    let world = World::start().await;
    for query in [
        "limit=0",
        "limit=1001",
        "limit=many",
        "cursor=what",
        "cursor=1.%27",
        "metadata=task",
        "metadata=%7B%22task%22%3A7%7D",
        "status=a&status=b",
        "status=",
        "template=",
        "metadata=",
    ] {
        let answer = world.get(&format!("/v1/sandboxes?{query}")).await;
        assert_eq!(answer.refusal(), "invalid_request", "{query}");
    }
}

#[tokio::test]
async fn a_cursor_of_another_project_shows_nothing_of_it() {
    let world = World::start().await;
    make(&world, json!({})).await;
    make(&world, json!({})).await;
    let page = world.get("/v1/sandboxes?limit=1").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let path = format!("/v1/sandboxes?cursor={cursor}");
    let foreign = world
        .ask(&world.foreign_key, Method::GET, &path, json!({}))
        .await;
    assert_eq!(foreign.json(), json!({"items": []}));
}
