//! Archives and layouts whose own files lead elsewhere.

use dayfly_oci::Digest;
use serde_json::json;
use tar::EntryType;

use crate::image::{Layer, Tar, config, layout};
use crate::workshop::{ROOM, Workshop};

fn layer() -> Layer {
    Layer::plain(Tar::new().file("name", b"content").done())
}

/// What `docker save` would write, with these names for config and layer.
fn saved(config_name: &str, layer_name: &str) -> Tar {
    let manifest = json!([{"Config": config_name, "RepoTags": ["a:1"], "Layers": [layer_name]}]);
    Tar::new().file("manifest.json", manifest.to_string().as_bytes())
}

fn config_file() -> (String, Vec<u8>) {
    let bytes = config(&[layer()]).to_string().into_bytes();
    (format!("{}.json", Digest::of(&bytes).hex()), bytes)
}

#[test]
fn an_archive_gives_its_own_members_and_nothing_else() {
    let (name, bytes) = config_file();
    let whole = saved(&name, "layer.tar")
        .file(&name, &bytes)
        .file("layer.tar", &layer().stored);
    let Some(workshop) = Workshop::new() else {
        return;
    };
    workshop.run_archive(&whole.done()).assert_made();
    let up = "../".repeat(12);
    let passwd = format!("{up}etc/passwd");
    let mut tampered = layer().stored;
    tampered[512] ^= 1;
    for (archive, reason) in [
        (saved(&passwd, "layer.tar"), "is not how the config"),
        (saved(&name, &passwd).file(&name, &bytes), "has no file"),
        (
            saved(&name, "/etc/passwd").file(&name, &bytes),
            "has no file",
        ),
        (
            saved(&name, "layer.tar").file(&name, &bytes).link(
                EntryType::Symlink,
                "layer.tar",
                &passwd,
            ),
            "no regular file",
        ),
        (
            saved(&name, "layer.tar").file(&name, &bytes).link(
                EntryType::Link,
                "layer.tar",
                "/etc/passwd",
            ),
            "no regular file",
        ),
        (
            saved(&name, "layer.tar")
                .file(&name, &bytes)
                .file("layer.tar", &tampered),
            "digest",
        ),
        (
            Tar::new().file("nothing", b"of an image"),
            "no tar of an image",
        ),
    ] {
        let Some(workshop) = Workshop::new() else {
            return;
        };
        workshop.run_archive(&archive.done()).assert_refused(reason);
    }
}

#[test]
fn a_layout_with_links_in_it_leads_nowhere() {
    let layer = layer();
    let blob = format!("blobs/sha256/{}", layer.named.hex());
    for name in ["index.json", &blob] {
        let Some(workshop) = Workshop::new() else {
            return;
        };
        let files = layout(std::slice::from_ref(&layer));
        workshop.write_layout(&files);
        // The same bytes, behind a link.
        let (_, bytes) = files.iter().find(|(one, _)| one == name).unwrap();
        let elsewhere = workshop.outside().join("bytes");
        std::fs::write(&elsewhere, bytes).unwrap();
        let inside = workshop.run_directory().join("image").join(name);
        std::fs::remove_file(&inside).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &inside).unwrap();
        let origin = dayfly_types::container_image::ImageJobOrigin::Layout { tag: None };
        workshop.write_job(origin, ROOM);
        workshop.run().assert_refused("no regular file");
    }
}
