//! `dayfly port`.

use serde_json::json;

use crate::support::{FakeServer, Program};

#[tokio::test]
async fn ports_are_listed_and_guests_cannot_write_on_the_screen() {
    let server = FakeServer::start().await;
    server.add("sb-local-a");
    let program = Program::at(&server);
    let done = program.run(&["port", "ls", "a"]).await;
    let line = "8000\t0.0.0.0[2J\thttp://8000-sb-local-a.localhost/\n";
    assert_eq!((done.status, done.stdout()), (0, line), "{done:?}");
    let done = program.run(&["port", "ls", "a", "-q"]).await;
    assert_eq!(done.stdout(), "8000\n");
    let done = program.run(&["port", "ls", "a", "--json"]).await;
    assert_eq!(done.json()[0]["port"], 8000);
}

#[tokio::test]
async fn a_port_is_waited_for_and_a_timeout_has_a_status_of_its_own() {
    let server = FakeServer::start().await;
    server.add("sb-local-a");
    let program = Program::at(&server);
    let done = program.run(&["port", "wait", "a", "8000"]).await;
    assert_eq!(
        (done.status, done.stdout()),
        (0, "http://a/p/\n"),
        "{done:?}"
    );
    let done = program.run(&["port", "wait", "a", "8000", "--json"]).await;
    assert_eq!(done.json()["port"], 8000);
    let late = ["port", "wait", "a", "9", "--timeout", "5s"];
    let done = program.run(&late).await;
    assert_eq!(done.status, 124, "{done:?}");
    let text = "timeout: nothing listens on port 9 after 5 s";
    assert!(done.stderr.contains(text), "{done:?}");
    assert!(
        done.stderr.contains("hint: `dayfly port ls ID`"),
        "{done:?}"
    );
}

#[tokio::test]
async fn links_are_made_listed_and_revoked() {
    let server = FakeServer::start().await;
    server.add("sb-local-a");
    let program = Program::at(&server);
    let done = program.run(&["port", "link", "a", "8000"]).await;
    let url = "http://8000-sb.localhost/?dayfly_token=dpt_secret\n";
    assert_eq!((done.status, done.stdout()), (0, url), "{done:?}");
    assert!(done.stderr.contains("link 8000-abc"), "{done:?}");
    assert!(!done.stderr.contains("dpt_secret"));
    let done = program
        .run(&[
            "port", "link", "a", "8000", "--public", "--ttl", "10m", "--json",
        ])
        .await;
    assert_eq!(done.json()["public"], true);
    let done = program.run(&["port", "link", "a", "8000", "--path"]).await;
    assert_eq!(done.stdout(), "http://a/path/\n");
    let done = program.run(&["port", "links", "a", "8000", "-q"]).await;
    assert_eq!(done.stdout(), "8000-abc\n");
    let done = program.run(&["port", "links", "a", "-q"]).await;
    assert_eq!(done.stdout(), "80-abc\n8000-abc\n");
    let done = program.run(&["port", "rm", "a", "8000-abc"]).await;
    assert_eq!((done.status, done.stdout()), (0, "8000-abc\n"), "{done:?}");
    let done = program
        .run(&["port", "rm", "a", "8000-abc", "--json"])
        .await;
    assert_eq!(done.json(), json!({"revoked": "8000-abc"}));
}

#[tokio::test]
async fn the_address_of_a_port_has_no_token() {
    let server = FakeServer::start().await;
    server.add("sb-local-a");
    let program = Program::at(&server);
    let url = format!("{}/v1/sandboxes/sb-local-a/ports/8000/http/", server.url());
    let done = program.run(&["port", "url", "a", "8000"]).await;
    assert_eq!(
        (done.status, done.stdout()),
        (0, format!("{url}\n").as_str())
    );
    assert!(done.stderr.contains("`dayfly port link`"), "{done:?}");
    let done = program.run(&["port", "url", "a", "8000", "--json"]).await;
    assert_eq!(done.json(), json!({"port": 8000, "url": url}));
    let done = program.run(&["port", "url", "a", "8000", "--public"]).await;
    assert_eq!(done.status, 2, "{done:?}");
}

#[tokio::test]
async fn refusals_say_what_and_why() {
    let server = FakeServer::start().await;
    server.add("sb-local-a");
    let program = Program::at(&server);
    let done = program
        .run(&["port", "link", "a", "8000", "--ttl", "604801"])
        .await;
    assert_eq!(done.status, 125, "{done:?}");
    assert!(
        done.stderr.contains("cannot make a link to port 8000"),
        "{done:?}"
    );
    let done = program.run(&["port", "rm", "a", "8000-other"]).await;
    assert!(
        done.stderr.contains("cannot revoke link 8000-other"),
        "{done:?}"
    );
    for bad in [
        &["port", "rm", "a", "nonsense"][..],
        &["port", "link", "a", "0"],
        &["port", "link", "a", "65536"],
    ] {
        assert_eq!(program.run(bad).await.status, 2, "{bad:?}");
    }
}
