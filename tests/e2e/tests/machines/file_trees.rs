//! Trees of real guests through the command line, and what changed on their disks.

use anyhow::{Context, Result, ensure};
use dayfly_api::{ChangeList, CreateSnapshot, ForkSandbox};
use dayfly_client::RemoveOptions;
use dayfly_e2e::{Daemon, DaemonOptions, create, exec, output, output_of_root, setting_or_skip};

/// Runs `dayfly`, which must succeed; gives what it printed.
async fn dayfly(daemon: &Daemon, arguments: &[&str]) -> Result<String> {
    let done = daemon.dayfly(arguments).await?;
    ensure!(done.status.success(), "{arguments:?}: {done:?}");
    Ok(String::from_utf8(done.stdout)?)
}

#[tokio::test]
async fn the_command_line_copies_directories_and_manages_files() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    let local = daemon.path().join("project");
    let text = |path: &std::path::Path| path.display().to_string();
    std::fs::create_dir_all(local.join("src/deep"))?;
    std::fs::write(local.join("src/main.py"), "print('hello')\n")?;
    std::fs::write(local.join("src/deep/data"), vec![9; 3_000_000])?;
    std::fs::write(local.join("new\nline"), "x")?;
    std::os::unix::fs::symlink("src/main.py", local.join("link"))?;

    // Below a directory that is there, under a new name, and the content alone.
    dayfly(&daemon, &["cp", &text(&local), &format!("{id}:/workspace")]).await?;
    let run = output(
        &client,
        &id,
        "python3 project/link; stat -c %U project/src/deep",
    )
    .await?;
    ensure!(run == "hello\nagent", "{run}");
    dayfly(
        &daemon,
        &["cp", &text(&local), &format!("{id}:/workspace/other")],
    )
    .await?;
    let content = format!("{}/.", text(&local));
    dayfly(
        &daemon,
        &["cp", &content, &format!("{id}:/workspace/content")],
    )
    .await?;
    let same = "diff -r project other && diff -r project content && echo same";
    ensure!(output(&client, &id, same).await? == "same");

    let back = daemon.path().join("back");
    dayfly(
        &daemon,
        &["cp", &format!("{id}:/workspace/project"), &text(&back)],
    )
    .await?;
    let diff = tokio::process::Command::new("diff")
        .args(["-r", "--no-dereference", &text(&local), &text(&back)])
        .status()
        .await?;
    ensure!(diff.success(), "what came back differs");

    manage(&daemon, &id).await?;
    let changes = dayfly(&daemon, &["fs", "changes", &format!("{id}:/workspace")]).await?;
    ensure!(
        changes.contains("A /workspace/project/src/main.py\n"),
        "{changes}"
    );
    daemon.finish().await
}

/// The rest of the file commands.
async fn manage(daemon: &Daemon, id: &str) -> Result<()> {
    let place = |path: &str| format!("{id}:{path}");
    dayfly(daemon, &["fs", "mkdir", "-p", &place("made/deep")]).await?;
    dayfly(daemon, &["fs", "mv", &place("other/src"), "made/deep/src"]).await?;
    dayfly(
        daemon,
        &["fs", "chmod", "0640", &place("made/deep/src/main.py")],
    )
    .await?;
    let listing = dayfly(daemon, &["fs", "ls", "-d", "9", "--json", &place("made")]).await?;
    let listing: serde_json::Value = serde_json::from_str(&listing)?;
    let names: Vec<&str> = listing["entries"]
        .as_array()
        .context("entries")?
        .iter()
        .filter_map(|entry| entry["name"].as_str())
        .collect();
    ensure!(
        names
            == [
                "deep",
                "deep/src",
                "deep/src/deep",
                "deep/src/deep/data",
                "deep/src/main.py"
            ],
        "{names:?}"
    );
    let stat = dayfly(
        daemon,
        &["fs", "stat", "--json", &place("made/deep/src/main.py")],
    )
    .await?;
    ensure!(stat.contains("\"0640\""), "{stat}");
    let taken = daemon
        .dayfly(&["fs", "mv", &place("project"), "content"])
        .await?;
    ensure!(!taken.status.success(), "something was replaced");
    dayfly(daemon, &["fs", "rm", "-r", &place("made")]).await?;
    Ok(())
}

fn told(list: &ChangeList) -> Vec<String> {
    let entries = list.entries.iter();
    entries
        .map(|entry| format!("{} {}", entry.kind, entry.path))
        .collect()
}

#[tokio::test]
async fn changes_are_told_since_the_beginning_and_since_a_snapshot() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    let fresh = client.list_changes(&id, "/", None).await?;
    dayfly_e2e::figure!("changes of a fresh sandbox: {:?}", told(&fresh));
    ensure!(fresh.entries.is_empty(), "{fresh:?}");

    exec(&client, &id, "mkdir -p a/b; echo 1 > a/b/one; echo 2 > two").await?;
    let as_root = "echo x >> /etc/bash.bashrc; rm /etc/profile; echo y > /etc/added";
    output_of_root(&client, &id, as_root).await?;
    let begun = [
        "added /etc/added",
        "modified /etc/bash.bashrc",
        "removed /etc/profile",
        "added /workspace/a",
        "added /workspace/a/b",
        "added /workspace/a/b/one",
        "added /workspace/two",
    ];
    let list = client.list_changes(&id, "/", None).await?;
    ensure!(told(&list) == begun && !list.truncated, "{:?}", told(&list));

    let snapshot = client
        .create_snapshot(&id, &CreateSnapshot::default())
        .await?;
    let since = Some(snapshot.id.as_str());
    let list = client.list_changes(&id, "/", since).await?;
    ensure!(list.entries.is_empty(), "{:?}", told(&list));
    exec(&client, &id, "echo 3 >> two; echo 4 > four; rm a/b/one").await?;
    let list = client.list_changes(&id, "/", since).await?;
    ensure!(
        told(&list) == ["added /workspace/four", "modified /workspace/two"],
        "{:?}",
        told(&list)
    );
    let below = client.list_changes(&id, "/workspace/a", None).await?;
    ensure!(
        told(&below) == ["added /workspace/a/b"],
        "{:?}",
        told(&below)
    );

    // A sleep keeps the beginning, a rollback brings back the state, a child begins anew.
    client.hibernate_sandbox(&id).await?;
    let list = client.list_changes(&id, "/workspace", None).await?;
    ensure!(told(&list).contains(&"added /workspace/four".to_owned()));
    client.rollback_sandbox(&id, &snapshot.id).await?;
    let list = client.list_changes(&id, "/", None).await?;
    ensure!(told(&list) == begun, "{:?}", told(&list));
    let forked = client.fork_sandbox(&id, &ForkSandbox::default()).await?;
    let child = &forked.children.first().context("a child")?.id;
    let list = client.list_changes(child, "/", None).await?;
    ensure!(list.entries.is_empty(), "{:?}", told(&list));
    exec(&client, child, "echo 5 > two").await?;
    let list = client.list_changes(child, "/", None).await?;
    ensure!(
        told(&list) == ["modified /workspace/two"],
        "{:?}",
        told(&list)
    );
    client
        .remove_file(child, "two", &RemoveOptions::default())
        .await?;
    daemon.finish().await
}
