//! Templates of an operator's own recipes and of a project's own snapshots.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSandbox, CreateSnapshot, CreateToken, Template, TemplateState};
use dayfly_client::{ApiKey, Client, ClientConfig};
use dayfly_e2e::{Daemon, DaemonOptions, create, output, patient, setting_or_skip, until};
use serde_json::Value;

/// A boot, a capture and digests.
const BAKED: Duration = Duration::from_secs(300);
const SOON: Duration = Duration::from_secs(60);
const MARK: &str = "cat /home/agent/mark";

/// Writes a recipe whose sandboxes know this word.
fn write_recipe(daemon: &Daemon, word: &str) -> Result<()> {
    let text = format!(
        "name = 'own'\nversion = 1\nfrom = 'base'\nmemory_mib = 512\nvcpus = 1\ndisk_mib = 1024\n\
         warm = ['echo {word} > /home/agent/mark']\n"
    );
    Ok(std::fs::write(
        daemon.path().join("recipes/own.toml"),
        text,
    )?)
}

async fn until_ready(daemon: &Daemon, client: &Client) -> Result<Template> {
    let baked = until("own is baked", patient(BAKED), || async {
        let template = client.template("own").await.ok()?;
        let is_settled = matches!(template.state, TemplateState::Ready | TemplateState::Failed);
        is_settled.then_some(template)
    });
    let template = baked.await.with_context(|| daemon.last_of_log())?;
    ensure!(template.state == TemplateState::Ready, "{template:?}");
    Ok(template)
}

async fn word_of_a_new_one(client: &Client) -> Result<String> {
    let id = create(client, "own").await?.id;
    let word = output(client, &id, MARK).await?;
    client.delete_sandbox(&id).await?;
    Ok(word.trim().to_owned())
}

#[tokio::test]
async fn an_edited_recipe_is_baked_without_a_restart() -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    ensure!(client.bake_template("own").await.is_err(), "it is known");
    write_recipe(&daemon, "one")?;
    client.bake_template("own").await?;
    until_ready(&daemon, &client).await?;
    let old = create(&client, "own").await?.id;
    ensure!(output(&client, &old, MARK).await?.trim() == "one");
    client.hibernate_sandbox(&old).await?;
    write_recipe(&daemon, "two")?;
    let ordered = client.bake_template("own").await?;
    ensure!(
        ordered.state != TemplateState::Ready && ordered.usable,
        "{ordered:?}"
    );
    ensure!(
        word_of_a_new_one(&client).await? == "one",
        "it cannot be used while it is baked"
    );
    until_ready(&daemon, &client).await?;
    ensure!(
        word_of_a_new_one(&client).await? == "two",
        "the recipe of before was baked"
    );
    ensure!(output(&client, &old, MARK).await?.trim() == "one");
    client.hibernate_sandbox(&old).await?;
    // A mistake, and a start: what is baked is used, and says what is wrong.
    std::fs::write(daemon.path().join("recipes/own.toml"), "nonsense")?;
    daemon.terminate().await?;
    daemon.start_again().await?;
    let usable = until("own can be used", patient(SOON), || async {
        client.template("own").await.ok().filter(|own| own.usable)
    });
    let template = usable.await?;
    let reason = template.detail.context("no reason")?;
    ensure!(template.state == TemplateState::Failed, "{reason}");
    ensure!(reason.contains("own.toml"), "{reason}");
    ensure!(word_of_a_new_one(&client).await? == "two");
    ensure!(output(&client, &old, MARK).await?.trim() == "one");
    client.delete_sandbox(&old).await?;
    daemon.finish().await
}

#[tokio::test]
async fn a_named_snapshot_is_a_template_of_its_project() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, operator) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let token = operator.create_token(None, &CreateToken::default()).await?;
    let client = Client::new(ClientConfig {
        url: daemon.url(),
        key: Some(ApiKey::parse(&token.token)?),
    })?;
    let source = create(&client, "base").await?.id;
    output(&client, &source, "echo prepared > /home/agent/mark").await?;
    output(&client, &source, "echo here > /dev/shm/mark").await?;
    let request = CreateSnapshot {
        name: Some("tools".to_owned()),
        ..CreateSnapshot::default()
    };
    let snapshot = client.create_snapshot(&source, &request).await?.id;
    let again = client.create_snapshot(&source, &request).await;
    ensure!(again.is_err(), "two have one name: {again:?}");
    client.delete_sandbox(&source).await?;
    let wish = CreateSandbox {
        from_snapshot: Some("tools".to_owned()),
        ..CreateSandbox::default()
    };
    let copy = client.create_sandbox(&wish).await?;
    ensure!(copy.from_snapshot == Some(snapshot), "{copy:?}");
    let both = "cat /home/agent/mark /dev/shm/mark";
    let found = output(&client, &copy.id, both).await?;
    ensure!(found == "prepared\nhere", "{found:?}");
    client.delete_sandbox(&copy.id).await?;
    let made = daemon
        .dayfly(&["create", "--from-snapshot", "tools"])
        .await?;
    ensure!(made.status.success(), "{made:?}");
    let id = String::from_utf8(made.stdout)?.trim().to_owned();
    ensure!(output(&client, &id, both).await? == found);
    client.delete_sandbox(&id).await?;
    let removed = daemon.dayfly(&["snapshot", "rm", "tools"]).await?;
    ensure!(removed.status.success(), "{removed:?}");
    ensure!(client.list_snapshots(None).await?.is_empty());
    daemon.finish().await
}

#[tokio::test]
async fn an_exported_image_is_baked_from_on_another_host() -> Result<()> {
    let setting = setting_or_skip!();
    let aside = tempfile::tempdir_in(setting.templates.parent().context("no parent")?)?;
    let options = DaemonOptions {
        environment: vec![("DAYFLYD_IMAGE_CACHE".to_owned(), aside.path().join("none"))],
        ..DaemonOptions::default()
    };
    let (daemon, client) = Daemon::ready(&setting, options).await?;
    let from = setting.templates.display().to_string();
    let to = daemon.path().display().to_string();
    let file = aside.path().join("base.image");
    let file = file.display().to_string();
    let exported = daemon
        .dayflyd(&[
            "image",
            "export",
            "base",
            &file,
            "--data-dir",
            &from,
            "--json",
        ])
        .await?;
    ensure!(exported.status.success(), "{exported:?}");
    let exported: Value = serde_json::from_slice(&exported.stdout)?;
    let digest = exported["digest"].as_str().context("no digest")?;
    // A host that has built nothing.
    std::fs::remove_dir_all(daemon.path().join("node/images"))?;
    let cut = aside.path().join("cut.image");
    let bytes = std::fs::read(&file)?;
    std::fs::write(&cut, bytes.get(..bytes.len() / 2).context("empty")?)?;
    drop(bytes);
    let cut = cut.display().to_string();
    for words in [
        ["image", "import", cut.as_str(), "--data-dir", &to],
        ["image", "import", "/dev/null", "--data-dir", &to],
    ] {
        let refused = daemon.dayflyd(&words).await?;
        ensure!(refused.status.code() == Some(125), "{refused:?}");
        ensure!(root_images(daemon.path())?.is_empty(), "something is there");
    }
    let imported = daemon
        .dayflyd(&[
            "image",
            "import",
            &file,
            "--digest",
            digest,
            "--data-dir",
            &to,
        ])
        .await?;
    ensure!(imported.status.success(), "{imported:?}");
    let before = root_images(daemon.path())?;
    ensure!(before.len() == 1, "{before:?}");
    write_recipe(&daemon, "carried")?;
    client.bake_template("own").await?;
    until_ready(&daemon, &client).await?;
    ensure!(word_of_a_new_one(&client).await? == "carried");
    ensure!(
        root_images(daemon.path())? == before,
        "another image was built"
    );
    daemon.finish().await
}

/// The disks among the images of a data directory, by inode.
fn root_images(directory: &Path) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(directory.join("node/images")) else {
        return Ok(found);
    };
    for entry in entries {
        if let Ok(disk) = entry?.path().join("base.img").metadata() {
            found.push(disk.ino());
        }
    }
    Ok(found)
}
