//! A group of the host that needs no key.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use dayfly_e2e::{Daemon, DaemonOptions, setting_or_skip};

/// One for the host: of several daemons the last one has it.
const FILE: &str = "/run/dayfly/local.json";
/// A group that every host has, and that nobody runs anything as.
const GROUP: &str = "games";

#[tokio::test]
async fn a_group_of_the_host_needs_no_key_and_administers_nothing() -> Result<()> {
    let setting = setting_or_skip!();
    let options = DaemonOptions {
        arguments: vec!["--local-group".to_owned(), GROUP.to_owned()],
        ..DaemonOptions::default()
    };
    let (daemon, _) = Daemon::ready(&setting, options).await?;
    let found = std::fs::metadata(FILE).context("no file for the group")?;
    let (owner, mode) = (found.uid(), found.mode() & 0o7777);
    ensure!(owner == 0 && mode == 0o640, "owner {owner}, mode {mode:o}");
    ensure!(found.gid() != 0, "it is root's group that reads it");
    let dayfly = async |words: &[&str]| {
        let mut command = tokio::process::Command::new(setting.programs.join("dayfly"));
        // Nor does it take certificates, which a small host has none of.
        command.env_clear().env("SSL_CERT_FILE", "/dev/null");
        command.args(words).output().await
    };
    let ran = dayfly(&["run", "--", "sh", "-c", "echo $((6*7))"]).await?;
    ensure!(ran.stdout == b"42\n", "a member was refused: {ran:?}");
    let not_theirs: [&[&str]; 3] = [
        &["project", "ls"],
        &["token", "create"],
        &["token", "rm", "local"],
    ];
    for words in not_theirs {
        let refused = dayfly(words).await?;
        ensure!(refused.status.code() == Some(4), "{words:?}: {refused:?}");
    }
    daemon.finish().await?;
    ensure!(!Path::new(FILE).exists(), "the key outlives the daemon");
    let left = Path::new(FILE).parent().map(std::fs::read_dir);
    let is_left_empty = left.is_some_and(|left| left.is_ok_and(|mut left| left.next().is_none()));
    ensure!(!is_left_empty, "an empty directory is left behind");
    Ok(())
}
