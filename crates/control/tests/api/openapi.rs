//! The published document is the one that the code describes. `DAYFLY_BLESS=1` rewrites it.

use std::path::Path;

use crate::support::World;

#[test]
fn openapi_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi/v1.json");
    let current = dayfly_control::openapi().to_pretty_json().unwrap() + "\n";
    if std::env::var_os("DAYFLY_BLESS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == current,
        "openapi/v1.json is out of date; run with DAYFLY_BLESS=1"
    );
}

#[test]
fn openapi_names_the_envelope_for_every_refusal() {
    let document = serde_json::to_value(dayfly_control::openapi()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for (status, response) in operation["responses"].as_object().unwrap() {
                if status.starts_with(['1', '2']) {
                    continue;
                }
                let schema = &response["content"]["application/json"]["schema"]["$ref"];
                assert_eq!(
                    schema, "#/components/schemas/ErrorBody",
                    "{method} {path} {status}"
                );
            }
        }
    }
}

#[test]
fn openapi_gives_every_operation_a_name_of_its_own() {
    let document = serde_json::to_value(dayfly_control::openapi()).unwrap();
    let mut names = std::collections::BTreeSet::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()));
        }
    }
}

#[tokio::test]
async fn openapi_document_is_served() {
    let world = World::start().await;
    let served = world.get("/v1/openapi.json").await.json();
    assert_eq!(
        served,
        serde_json::to_value(dayfly_control::openapi()).unwrap()
    );
}
