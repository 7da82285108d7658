//! `dayfly exec -it` and `dayfly shell` in a real terminal.

use anyhow::{Result, ensure};
use dayfly_e2e::screen::Screen;
use dayfly_e2e::{Daemon, DaemonOptions, create, setting_or_skip};

async fn open(daemon: &Daemon, arguments: &[&str]) -> Result<Screen> {
    let program = daemon.programs().join("dayfly").display().to_string();
    let words = std::iter::once(program).chain(arguments.iter().map(|word| (*word).to_owned()));
    let environment = [
        ("DAYFLY_API_URL".to_owned(), daemon.url()),
        ("DAYFLY_API_KEY".to_owned(), daemon.key()?),
    ];
    Screen::start(&words.collect::<Vec<_>>(), &environment).await
}

/// Ctrl-C ends the command in the guest and nothing else.
async fn interrupt(screen: &Screen) -> Result<()> {
    // The word comes from the process that is to be interrupted: a shell that has said it itself
    // may not have started the sleep yet, and then forgets the interrupt.
    let command = "sh -c 'echo begin; exec sleep 1000'";
    screen.keys(&[command, "Enter"]).await?;
    screen
        .wait_for("the sleep", |text| text.contains("\nbegin\n"))
        .await?;
    screen.keys(&["C-c"]).await?;
    // A terminal drops what was typed before the interrupt came.
    screen
        .wait_for("a prompt again", |text| {
            text.contains("^C") && text.trim_end().ends_with('$')
        })
        .await?;
    screen.keys(&["echo status $?", "Enter"]).await?;
    screen
        .wait_for("the interrupt", |text| text.contains("status 130"))
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_person_can_work_in_a_sandbox() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;

    let screen = open(&daemon, &["exec", "-it", &id, "--", "bash"]).await?;
    screen
        .wait_for("a prompt", |text| text.contains('$'))
        .await?;
    // Typing, and the echo of the guest's terminal.
    screen
        .keys(&["echo six times seven is $((6*7))", "Enter"])
        .await?;
    screen
        .wait_for("the answer", |text| text.contains("seven is 42"))
        .await?;
    // The size, and a change of it.
    screen.keys(&["stty size", "Enter"]).await?;
    screen
        .wait_for("the size", |text| text.contains("24 80"))
        .await?;
    screen.resize(100, 30).await?;
    screen.keys(&["stty size", "Enter"]).await?;
    screen
        .wait_for("the new size", |text| text.contains("30 100"))
        .await?;
    interrupt(&screen).await?;
    // A program that uses the whole screen, and gives it back.
    screen
        .keys(&["seq 1 500 > numbers; clear; less numbers", "Enter"])
        .await?;
    screen
        .wait_for("less", |text| text.starts_with("1\n2\n3\n"))
        .await?;
    screen.keys(&["G"]).await?;
    screen
        .wait_for("the end", |text| text.contains("500\n"))
        .await?;
    screen.keys(&["q"]).await?;
    screen.keys(&["echo back", "Enter"]).await?;
    screen
        .wait_for("the shell", |text| text.contains("\nback"))
        .await?;
    // A clean exit with the shell's own status.
    screen.keys(&["exit 9", "Enter"]).await?;
    ensure!(screen.exit_status().await? == 9);
    drop(screen);

    let screen = open(&daemon, &["shell", &id]).await?;
    screen
        .wait_for("a prompt", |text| text.contains('$'))
        .await?;
    screen.keys(&["pwd; whoami", "Enter"]).await?;
    screen
        .wait_for("who and where", |text| {
            text.contains("\n/workspace\nagent\n") && text.trim_end().ends_with('$')
        })
        .await?;
    screen.keys(&["C-d"]).await?;
    ensure!(screen.exit_status().await? == 0);
    drop(screen);
    client.delete_sandbox(&id).await?;
    daemon.finish().await
}
