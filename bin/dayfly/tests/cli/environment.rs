//! `--env`: of a command, or of a sandbox with all its commands.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::{FakeServer, Program};

const A: &str = "sb-local-aaaa0000000000000000000000";

fn variables(pairs: &[(&str, &str)]) -> Option<BTreeMap<String, String>> {
    let pairs = pairs.iter();
    let owned = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Some(owned.collect())
}

#[tokio::test]
async fn a_name_alone_has_the_value_that_it_has_here() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server)
        .with("TOKEN", "from = here")
        .with("EMPTY", "");
    let given = [
        "--env", "TOKEN", "-e", "B=", "-e", "EMPTY", "--env", "C=d=e",
    ];
    let expected = variables(&[
        ("TOKEN", "from = here"),
        ("B", ""),
        ("EMPTY", ""),
        ("C", "d=e"),
    ]);
    let done = program.run(&[&["create"], &given[..]].concat()).await;
    assert_eq!(done.status, 0, "{done:?}");
    assert_eq!(server.world().creates[0].env, expected);
    let done = program.run(&[&["fork", A], &given[..]].concat()).await;
    assert_eq!(done.status, 0, "{done:?}");
    assert_eq!(server.world().forks[0].options.env, expected);
    let done = program.run(&[&["wake", A], &given[..]].concat()).await;
    assert_eq!(done.status, 0, "{done:?}");
    assert_eq!(server.world().wakes[0].env, expected);
    let command = ["--", "request"];
    let done = program
        .run(&[&["exec"], &given[..], &[A], &command].concat())
        .await;
    let request: serde_json::Value = serde_json::from_str(done.stdout()).unwrap();
    assert_eq!(request["env"], json!(expected));
    let done = program.run(&["create"]).await;
    assert_eq!(
        (done.status, server.world().creates[1].env.clone()),
        (0, None)
    );
}

#[tokio::test]
async fn a_name_that_is_not_set_is_refused() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    for (given, said) in [("TOKEN", "TOKEN is not set here"), ("=b", "give KEY=VALUE")] {
        for words in [vec!["create"], vec!["fork", A], vec!["wake", A]] {
            let done = program.run(&[&words[..], &["--env", given]].concat()).await;
            assert_eq!(done.status, 2, "{done:?}");
            assert!(done.stderr.contains(said), "{done:?}");
        }
    }
    let world = server.world();
    assert!(world.creates.is_empty() && world.forks.is_empty() && world.wakes.is_empty());
}

#[tokio::test]
async fn a_rollback_replaces_them_and_info_shows_names() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let taken = program.run(&["snapshot", "create", A]).await;
    let snapshot = taken.stdout().trim().to_owned();
    for given in [&["--env", "A=1"][..], &[]] {
        let done = program
            .run(&[&["rollback", A, &snapshot], given].concat())
            .await;
        assert_eq!(done.status, 0, "{done:?}");
    }
    let rollbacks = server.world().rollbacks.clone();
    assert_eq!(rollbacks[0].env, variables(&[("A", "1")]));
    assert_eq!(rollbacks[1].env, None);
    let made = program
        .run(&["create", "-e", "B=secret", "-e", "A=secret"])
        .await;
    let shown = program.run(&["info", made.stdout().trim()]).await;
    assert!(shown.stdout().contains("environment\tA, B\n"), "{shown:?}");
    assert!(!shown.stdout().contains("secret"));
}
