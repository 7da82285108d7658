//! `dayfly fs`, and `dayfly cp` of directories.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::{FakeServer, Program};

const A: &str = "sb-local-aaaa0000000000000000000000";

fn last(server: &FakeServer) -> serde_json::Value {
    server
        .world()
        .file_requests
        .last()
        .cloned()
        .unwrap_or_default()
}

#[tokio::test]
async fn a_directory_goes_in_and_comes_out() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    std::fs::create_dir_all(program.path("tree/deep")).unwrap();
    std::fs::write(program.path("tree/deep/file"), vec![7; 100_000]).unwrap();
    symlink("deep/file", program.path("tree/link")).unwrap();

    // Below what is there, else under the name that is given; the content alone with a dot.
    for (source, to, lands) in [
        ("tree", "aaaa:/workspace", "/workspace/tree"),
        ("tree", "aaaa:new", "new"),
        ("tree", "aaaa:new/", "new/tree"),
        ("tree/.", "aaaa:/workspace", "/workspace"),
    ] {
        let done = program.run(&["cp", "--json", source, to]).await;
        assert_eq!(done.status, 0, "{done:?}");
        assert_eq!(done.json()["path"], lands);
        assert_eq!(done.json()["files"], 1);
    }
    let done = program.run(&["cp", "aaaa:/workspace", "back"]).await;
    assert_eq!(done.status, 0, "{done:?}");
    assert!(done.stderr.contains("copied 1 file to back"), "{done:?}");
    let file = std::fs::read(program.path("back/deep/file")).unwrap();
    assert_eq!(file, vec![7; 100_000]);
    assert!(program.path("back/link").is_symlink());
    std::fs::create_dir(program.path("there")).unwrap();
    assert_eq!(
        program
            .run(&["cp", "aaaa:/workspace", "there"])
            .await
            .status,
        0
    );
    assert!(program.path("there/workspace/deep/file").is_file());
    // As it is, for a program that reads archives.
    let archive = program.run(&["cp", "aaaa:/workspace", "-"]).await;
    assert_eq!(archive.stdout, server.world().files["/workspace"]);
}

#[tokio::test]
async fn a_link_is_printed_with_the_address_of_the_server() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["fs", "link", "aaaa:a.csv"]).await;
    let wanted = format!("{}/v1/x?dayfly_token=t", server.url());
    assert_eq!(done.stdout().trim_end(), wanted, "{done:?}");
    assert!(
        done.stderr
            .contains(&format!("`dayfly fs revoke {A} dfk_link`")),
        "{done:?}"
    );
    let words = [
        "fs",
        "link",
        "--upload",
        "--ttl",
        "5m",
        "aaaa:a.csv",
        "--json",
    ];
    let done = program.run(&words).await;
    assert_eq!(done.json()["method"], "PUT");
    assert_eq!(done.json()["address"], wanted);
    let asked = server.world().file_requests.last().cloned();
    let wanted = json!({"path": "a.csv", "operation": "upload", "ttl_seconds": 300});
    assert_eq!(asked, Some(wanted));
    let done = program
        .run(&["fs", "-u", "root", "link", "aaaa:a.csv"])
        .await;
    assert_eq!(done.status, 2, "{done:?}");
}

#[tokio::test]
async fn a_link_to_a_file_is_revoked_by_its_id() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["fs", "revoke", "aaaa", "dfk_link"]).await;
    assert_eq!((done.status, done.stdout().trim_end()), (0, "dfk_link"));
    let done = program
        .run(&["fs", "revoke", "aaaa", "dfk_link", "--json"])
        .await;
    assert_eq!(done.json(), json!({"revoked": "dfk_link"}));
    let done = program.run(&["fs", "revoke", "aaaa", "dfk_other"]).await;
    assert_eq!(done.status, 125, "{done:?}");
    assert!(done.stderr.contains("`dayfly token rm`"), "{done:?}");
}

#[tokio::test]
async fn a_hostile_archive_leaves_nothing_outside() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let mut header = tar::Header::new_gnu();
    let name = b"../escaped";
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_size(0);
    header.set_cksum();
    let mut archive = header.as_bytes().to_vec();
    archive.resize(archive.len() + 1024, 0);
    server
        .world()
        .files
        .insert("/workspace".to_owned(), archive.into());
    let done = program.run(&["cp", "aaaa:/workspace", "back"]).await;
    assert_eq!(done.status, 125, "{done:?}");
    assert!(done.stderr.contains("leads out"), "{done:?}");
    assert!(!program.path("escaped").exists());
}

#[tokio::test]
async fn a_directory_that_cannot_be_sent_says_why() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    std::fs::create_dir(program.path("tree")).unwrap();
    let done = program.run(&["cp", "tree", "aaaa:refused"]).await;
    assert_eq!(done.status, 125);
    assert!(done.stderr.contains("refused the archive"), "{done:?}");
}

#[tokio::test]
async fn a_listing_fetches_every_page_unless_it_has_a_limit() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["fs", "ls", "-q", "aaaa:/x"]).await;
    assert_eq!(done.stdout(), "a\na/b\nc[2J\nd\ne\nf\ng\n");
    let done = program
        .run(&[
            "fs", "ls", "--json", "--depth", "2", "-u", "root", "aaaa:/x",
        ])
        .await;
    assert_eq!(done.json()["entries"].as_array().unwrap().len(), 7);
    assert_eq!(done.json()["has_more"], false);
    assert_eq!(last(&server)["user"], "root");
    assert_eq!(last(&server)["depth"], "2");
    let done = program
        .run(&["fs", "ls", "--json", "--limit", "2", "aaaa:/x"])
        .await;
    assert_eq!(done.json()["next_after"], "a/b");
    let done = program.run(&["fs", "ls", "aaaa:/x"]).await;
    assert!(
        done.stdout().starts_with("d0644\t1000:1000\t5\t"),
        "{done:?}"
    );
}

#[tokio::test]
async fn files_are_made_moved_changed_and_removed() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let cases: [(&[&str], serde_json::Value); 5] = [
        (
            &["fs", "mkdir", "-p", "-m", "0700", "aaaa:/d"],
            json!({"what": "mkdir", "path": "/d", "mode": "0700", "parents": true}),
        ),
        (
            &["fs", "mv", "aaaa:/a", "/b"],
            json!({"what": "move", "from": "/a", "to": "/b"}),
        ),
        (
            &["fs", "mv", "-f", "aaaa:/a", "aaaa:/b"],
            json!({"what": "move", "from": "/a", "to": "/b", "replace": true}),
        ),
        (
            &["fs", "chmod", "0644", "aaaa:/a", "-u", "root"],
            json!({"what": "chmod", "path": "/a", "mode": "0644", "user": "root"}),
        ),
        (
            &["fs", "rm", "-r", "aaaa:/a"],
            json!({"path": "/a", "recursive": "true"}),
        ),
    ];
    for (arguments, asked) in cases {
        let done = program.run(arguments).await;
        assert_eq!(done.status, 0, "{done:?}");
        assert_eq!(last(&server), asked, "{arguments:?}");
    }
    let done = program.run(&["fs", "mkdir", "aaaa:/there"]).await;
    assert_eq!(done.status, 125);
    assert!(done.stderr.contains("cannot make /there"), "{done:?}");
    for arguments in [
        ["fs", "rm", "/a"],
        ["fs", "stat", "aaaa"],
        ["fs", "rm", "aaaa:"],
    ] {
        assert_eq!(program.run(&arguments).await.status, 2, "{arguments:?}");
    }
}

#[tokio::test]
async fn a_watch_prints_a_line_for_each_change() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["fs", "watch", "-r", "aaaa:/x"]).await;
    assert_eq!(done.status, 0, "{done:?}");
    assert_eq!(done.stdout(), "created /x/d/\nmoved /x/b from /x/a[2J\n");
    assert!(done.stderr.contains("changes were lost"), "{done:?}");
    assert_eq!(last(&server)["recursive"], "true");
    let done = program.run(&["fs", "watch", "--json", "aaaa:/x"]).await;
    let lines: Vec<serde_json::Value> = done
        .stdout()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[1], json!({"kind": "overflow"}));
    assert_eq!(lines[2]["from"], "/x/a\u{1b}[2J");
    let done = program.run(&["fs", "watch", "aaaa:/lost"]).await;
    assert_eq!(done.status, 125);
    assert!(done.stderr.contains("the guest is gone"), "{done:?}");
}

#[tokio::test]
async fn changes_are_a_letter_and_a_path() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["fs", "changes", "aaaa"]).await;
    assert_eq!(done.stdout(), "M /etc/x\nA /w/\nD /gone\n");
    assert!(done.stderr.contains("more changes"), "{done:?}");
    assert_eq!(last(&server), json!({"path": "/"}));
    program.run(&["fs", "changes", "aaaa:/w"]).await;
    assert_eq!(last(&server), json!({"path": "/w"}));
}
