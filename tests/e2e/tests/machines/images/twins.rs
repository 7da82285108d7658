//! Two images with a layer in common: each is what umoci unpacks, and the layer is on the host once.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use dayfly_api::CreateSandbox;

use super::*;

const TWINS: [&str; 2] = ["twin-one", "twin-two"];
/// What the layer of both holds.
const COMMON_BYTES: u64 = 28 << 20;
const BLOCK: u64 = 512;

/// A file of the newest version of the template whose name begins so.
fn file(daemon: &Daemon, template: &str, name: &str) -> Result<Metadata> {
    let all = std::fs::read_dir(daemon.path().join("node/templates"))?;
    let mut all = all.filter_map(|entry| Some(entry.ok()?.path()));
    let begins = |path: &PathBuf| {
        let found = path.file_name().map(|found| found.to_string_lossy());
        found.is_some_and(|found| found.starts_with(template))
    };
    let directory = all.find(begins).context("no such template")?;
    let mut versions: Vec<PathBuf> = std::fs::read_dir(&directory)
        .with_context(|| directory.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    versions.sort();
    let newest = versions.pop().context("no version")?;
    let path = newest.join(name);
    std::fs::metadata(&path).with_context(|| path.display().to_string())
}

#[tokio::test]
async fn images_with_a_common_layer_have_their_own_files_and_store_it_once() -> Result<()> {
    let setting = setting_or_skip!();
    let images = Images::make(&TWINS)?;
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    for tag in TWINS {
        images.write_recipe(&daemon, tag, "")?;
        let template = bake(&daemon, &client, &format!("image-{tag}")).await?;
        ensure!(template.state == TemplateState::Ready, "{template:?}");
    }
    for tag in TWINS {
        has_its_files(&images, &client, tag).await?;
    }
    let part = |tag: &str| file(&daemon, &format!("image-{tag}"), "base-0.img");
    let (one, two) = (part(TWINS[0])?, part(TWINS[1])?);
    ensure!(one.ino() == two.ino(), "the layer is stored twice");
    ensure!(one.blocks() * BLOCK >= COMMON_BYTES, "{}", one.blocks());
    for tag in TWINS {
        let own = file(&daemon, &format!("image-{tag}"), "base.img")?;
        ensure!(own.blocks() * BLOCK < 1 << 20, "{}", own.blocks());
    }
    is_built_on(&daemon, &client, TWINS[0]).await?;
    let built = file(&daemon, "built.", "base-0.img")?;
    ensure!(built.ino() == one.ino(), "the layer is stored once more");
    // The first goes with its recipe; the other, which has the layer too, works on.
    let recipe = daemon
        .path()
        .join(format!("recipes/image-{}.toml", TWINS[0]));
    std::fs::remove_file(recipe)?;
    has_its_files(&images, &client, TWINS[1]).await?;
    daemon.finish().await
}

/// A template of a Dockerfile, which takes the disk over from a snapshot.
async fn is_built_on(daemon: &Daemon, client: &Client, tag: &str) -> Result<()> {
    let context = tempfile::tempdir()?;
    let text = format!("FROM image-{tag}\nUSER root\nWORKDIR /\nRUN echo built > /built\n");
    std::fs::write(context.path().join("Dockerfile"), text)?;
    let path = context.path().to_string_lossy().into_owned();
    let words = ["--json", "template", "build", &path, "--tag", "twin"];
    let child = daemon.command(&words)?.kill_on_drop(true).output();
    let ended = tokio::time::timeout(patient(BAKED), child).await??;
    ensure!(ended.status.success(), "{ended:?}");
    let request = CreateSandbox {
        template: Some("twin".to_owned()),
        ..CreateSandbox::default()
    };
    let sandbox = client.create_when_ready(&request, |_| {}).await?.id;
    let said = output(
        client,
        &sandbox,
        "cat /built /name && cat /both > /dev/null",
    )
    .await?;
    ensure!(said == format!("built\n{tag}"), "{said}");
    client.delete_sandbox(&sandbox).await?;
    Ok(())
}

async fn has_its_files(images: &Images, client: &Client, tag: &str) -> Result<()> {
    let sandbox = create(client, &format!("image-{tag}")).await?.id;
    let expected = images.expected(tag)?;
    let found = images.found(client, &sandbox, &expected).await?;
    ensure!(expected.contains("/both"), "umoci unpacked nothing");
    ensure!(
        expected == found,
        "{tag}: {}",
        difference(&expected, &found)
    );
    client.delete_sandbox(&sandbox).await?;
    Ok(())
}
