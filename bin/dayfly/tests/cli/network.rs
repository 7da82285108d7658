//! `dayfly net`, and what a new sandbox may reach.

use dayfly_api::NetworkWish;
use serde_json::{Value, json};

use crate::support::{FakeServer, Program};

const A: &str = "sb-local-aaaa0000000000000000000000";

fn last(server: &FakeServer) -> Value {
    let world = server.world();
    let wish: Option<&NetworkWish> = world.networks.last();
    json!(wish)
}

#[tokio::test]
async fn a_policy_is_shown_as_a_table_and_as_json() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["net", "show", "aaaa"]).await;
    assert_eq!(
        done.stdout(),
        "mode\tallowlist\nepoch\t4\nin force\tyes\nrule mine[2J\t*.example.com:443\n\
         rule net\t93.184.216.0/24:22,80\n"
    );
    let done = program.run(&["net", "show", A, "--json"]).await;
    assert_eq!(done.json()["rules"][1]["cidr"], "93.184.216.0/24");
    let done = program
        .run(&["net", "show", "sb-local-00000000000000000000000009"])
        .await;
    assert_eq!(done.status, 125);
    assert!(
        done.stderr.contains("cannot read the network of"),
        "{done:?}"
    );
}

#[tokio::test]
async fn flags_say_what_a_sandbox_may_reach() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    for (flags, wish) in [
        (
            vec!["--allow", "pypi.org", "--allow", "preset:git-hosts"],
            json!({"mode": "allowlist", "rules": ["pypi.org", "preset:git-hosts"]}),
        ),
        (vec!["--allow", "preset:public"], json!({"mode": "public"})),
        (vec!["--network", "deny"], json!({"mode": "deny"})),
        (vec!["--network", "public"], json!({"mode": "public"})),
        (
            vec!["--network", "observe", "--allow", "a.test"],
            json!({"mode": "observe", "rules": ["a.test"]}),
        ),
    ] {
        let run = async |words: &[&str]| {
            let args: Vec<&str> = words.iter().chain(&flags).copied().collect();
            let done = program.run(&args).await;
            assert_eq!(done.status, 0, "{args:?}: {done:?}");
        };
        run(&["create"]).await;
        run(&["net", "set", "aaaa"]).await;
        assert_eq!(last(&server), wish);
        run(&["net", "default"]).await;
        assert_eq!(last(&server), wish);
        run(&["fork", "aaaa"]).await;
        let created = json!(server.world().creates.last().unwrap().network);
        assert_eq!(created, wish);
        let forked = json!(server.world().forks.last().unwrap().options.network);
        assert_eq!(forked, wish);
        let mut args = vec!["run"];
        args.extend(&flags);
        args.extend(["--", "exit", "0"]);
        assert_eq!(program.run(&args).await.status, 0);
        let created = json!(server.world().creates.last().unwrap().network);
        assert_eq!(created, wish);
    }
    program.run(&["create"]).await;
    assert_eq!(server.world().creates.last().unwrap().network, None);
}

#[tokio::test]
async fn flags_that_contradict_each_other_are_a_usage_error_and_send_nothing() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    for args in [
        vec!["create", "--network", "deny", "--allow", "a.test"],
        vec!["create", "--network", "open"],
        vec!["fork", A, "--network", "public", "--allow", "a.test"],
        vec!["net", "set", A],
        vec!["net", "set", A, "--network", "public", "--allow", "a.test"],
        vec!["net", "allow", A],
        vec!["net", "presets", "none"],
        vec!["net"],
    ] {
        let done = program.run(&args).await;
        assert_eq!(done.status, 2, "{args:?}: {done:?}");
    }
    let world = server.world();
    assert!(world.networks.is_empty() && world.creates.is_empty() && world.forks.is_empty());
}

#[tokio::test]
async fn allow_and_deny_change_and_show_what_holds() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program
        .run(&["net", "allow", "aaaa", "a.test", "b.test:22"])
        .await;
    assert_eq!(
        done.stdout(),
        "mode\tallowlist\nepoch\t2\nin force\tyes\nrule a.test\ta.test:80,443\n\
         rule b.test:22\tb.test:22:80,443\n"
    );
    assert_eq!(done.stderr, "");
    let done = program
        .run(&["net", "allow", A, "slow.test", "--json"])
        .await;
    assert_eq!(done.json()["enforced"], false);
    assert!(done.stderr.contains("not in force now"), "{done:?}");
    let done = program.run(&["net", "deny", "aaaa"]).await;
    assert_eq!(done.stdout(), "mode\tdeny\nepoch\t2\nin force\tyes\n");
    assert_eq!(last(&server), json!({"mode": "deny"}));
    let done = program.run(&["net", "allow", A, "refused.test"]).await;
    assert_eq!(done.status, 125);
    assert_eq!(
        done.stderr,
        format!(
            "error: cannot change the network of sandbox {A}: entry 1 is no rule\n\n\
             hint: name another\n"
        )
    );
}

#[tokio::test]
async fn a_log_is_read_in_pages_and_printed_as_one() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["net", "log", "aaaa"]).await;
    assert_eq!(
        done.stdout(),
        "2026-01-01T00:00:00Z\tdenied\ttls\tevil.test:443\tno_rule\t-\n\
         2026-01-01T00:00:00Z\tclosed\ttls\tpypi.org:443\tpypi\t10/20\n\
         2026-01-01T00:00:00Z\tallowed\tdns\tpypi.org\twould_deny\t-\n"
    );
    assert!(
        done.stderr.contains("4 records are no longer there"),
        "{done:?}"
    );
    let done = program
        .run(&["net", "log", A, "--after", "6", "--json"])
        .await;
    assert_eq!(done.json()["records"].as_array().unwrap().len(), 1);
    let done = program.run(&["net", "log", A, "--after", "7"]).await;
    assert_eq!(done.stdout(), "");
    assert!(done.stderr.contains("nothing is recorded"), "{done:?}");
}

#[tokio::test]
async fn a_log_is_followed_with_a_line_for_each_decision() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["net", "log", "-f", "aaaa"]).await;
    assert_eq!(done.status, 0, "{done:?}");
    let lines: Vec<Vec<&str>> = done
        .stdout()
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        lines[0][1..],
        ["denied", "tls", "evil.test:443", "no_rule", "-"]
    );
    assert!(done.stderr.contains("4 records"), "{done:?}");
    let done = program.run(&["net", "log", "-f", A, "--json"]).await;
    let lines: Vec<Value> = done
        .stdout()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0], json!({"lost": 4}));
    assert_eq!(lines[2]["bytes_down"], 20);
}

#[tokio::test]
async fn a_suggestion_is_shown_and_applied_on_request() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["net", "suggest", "aaaa"]).await;
    assert_eq!(done.stdout(), "pypi.org\t443\n");
    for words in [
        "from 9 records",
        "93.184.216.34:22 had no name",
        "3 records are gone",
    ] {
        assert!(done.stderr.contains(words), "{done:?}");
    }
    let done = program.run(&["net", "suggest", A, "--json"]).await;
    assert_eq!(done.json()["records"], 9);
    assert!(server.world().networks.is_empty());
    let done = program
        .run(&["net", "suggest", A, "--apply", "--json"])
        .await;
    assert_eq!((done.status, &done.json()["epoch"]), (0, &json!(2)));
    assert_eq!(
        last(&server),
        json!({"mode": "allowlist", "rules": [
            {"host": "pypi.org", "ports": [443], "id": "pypi.org"}]})
    );
    // An empty suggestion would cut everything off.
    program.run(&["pause", A]).await;
    let done = program.run(&["net", "suggest", A, "--apply"]).await;
    assert_eq!(done.status, 125);
    assert!(done.stderr.contains("nothing to suggest"), "{done:?}");
    assert_eq!(server.world().networks.len(), 1);
}

#[tokio::test]
async fn presets_and_the_default_are_shown() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["net", "presets"]).await;
    assert_eq!(
        done.stdout(),
        "git-hosts\tallowlist\t1\thosts\npublic\tpublic\t0\tall\n"
    );
    for name in ["git-hosts", "preset:git-hosts"] {
        let done = program.run(&["net", "presets", name]).await;
        assert_eq!(done.stdout(), "github.com\t443\n");
    }
    let done = program.run(&["net", "presets", "--json"]).await;
    assert_eq!(done.json()[1]["name"], "public");
    let done = program.run(&["net", "default"]).await;
    assert_eq!(done.stdout(), "mode\tdeny\n");
    let done = program.run(&["net", "default", "--json"]).await;
    assert_eq!(done.json(), json!({"mode": "deny", "rules": []}));
    let done = program.run(&["info", A]).await;
    assert!(done.stdout().contains("network\tdeny\n"), "{done:?}");
}
