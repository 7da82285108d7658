//! Two images with a layer in common: each is what umoci unpacks, and the layer is on the host once.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use super::*;

const TWINS: [&str; 2] = ["twin-one", "twin-two"];
/// What the layer of both holds.
const COMMON_BYTES: u64 = 28 << 20;
const BLOCK: u64 = 512;

/// A file of the newest version of a template.
fn file(daemon: &Daemon, template: &str, name: &str) -> Result<Metadata> {
    let directory = daemon.path().join("node/templates").join(template);
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
    // The first goes with its recipe; the other, which has the layer too, works on.
    let recipe = daemon
        .path()
        .join(format!("recipes/image-{}.toml", TWINS[0]));
    std::fs::remove_file(recipe)?;
    has_its_files(&images, &client, TWINS[1]).await?;
    daemon.finish().await
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
