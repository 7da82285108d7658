use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::blob::FetchBlobError;
use crate::digest::Digest;
use crate::document::{InvalidDocument, LayerBlob, OCI_INDEX, OCI_MANIFEST};
use crate::source::{FindImageError, ImageOrigin};

const LAYER: &[u8] = b"the bytes of a layer";

struct Layout {
    directory: tempfile::TempDir,
}

impl Layout {
    fn empty() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("blobs/sha256")).unwrap();
        let layout = Self { directory };
        layout.write("oci-layout", br#"{"imageLayoutVersion": "1.0.0"}"#);
        layout
    }

    /// With one image of one layer, named `v1`.
    fn new() -> Self {
        let layout = Self::empty();
        let manifest = layout.image();
        layout.name(&[with_name(manifest, "v1")]);
        layout
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn blob(&self, media_type: &str, content: &[u8]) -> Value {
        let digest = Digest::of(content);
        self.write(&blob_path(content), content);
        json!({"mediaType": media_type, "digest": digest, "size": content.len()})
    }

    fn image(&self) -> Value {
        let config = json!({
            "architecture": "amd64", "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [Digest::of(LAYER)]},
            "config": {"Cmd": ["/bin/sh"]},
        });
        let config = config.to_string();
        let config = self.blob(
            "application/vnd.oci.image.config.v1+json",
            config.as_bytes(),
        );
        let layer = self.blob("application/vnd.oci.image.layer.v1.tar", LAYER);
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]});
        self.blob(OCI_MANIFEST, manifest.to_string().as_bytes())
    }

    fn name(&self, entries: &[Value]) {
        let index = json!({"schemaVersion": 2, "manifests": entries});
        self.write("index.json", index.to_string().as_bytes());
    }

    fn source(&self, tag: Option<&str>) -> ImageOrigin {
        ImageOrigin::Layout {
            path: self.directory.path().to_owned(),
            tag: tag.map(str::to_owned),
        }
    }

    async fn find(&self, tag: Option<&str>) -> Result<Image, ReadImageError> {
        self.source(tag).find().await.map_err(|error| {
            let FindImageError::Disk(error) = error else {
                panic!("{error:?}");
            };
            error
        })
    }

    async fn fetch(&self, layer: &LayerBlob) -> Result<(), FetchBlobError> {
        let into = self.path("fetched");
        let fetched = self.source(None).fetch(layer, &into, &|_| ()).await;
        assert_eq!(into.exists(), fetched.is_ok());
        fetched
    }
}

fn blob_path(content: &[u8]) -> String {
    format!("blobs/sha256/{}", Digest::of(content).hex())
}

fn with_name(mut entry: Value, name: &str) -> Value {
    entry["annotations"] = json!({"org.opencontainers.image.ref.name": name});
    entry
}

#[tokio::test]
async fn an_image_is_found_by_its_name_and_its_layer_is_written() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::atomic::{AtomicU64, Ordering};
    let layout = Layout::new();
    let image = layout.find(Some("v1")).await.unwrap();
    assert_eq!(image, layout.find(None).await.unwrap());
    assert_eq!(image.config.command, ["/bin/sh"]);
    let told = AtomicU64::new(0);
    let into = layout.path("fetched");
    let progress = |bytes| told.store(bytes, Ordering::Relaxed);
    let source = layout.source(None);
    source
        .fetch(&image.layers[0], &into, &progress)
        .await
        .unwrap();
    assert_eq!(std::fs::read(&into).unwrap(), LAYER);
    assert_eq!(told.load(Ordering::Relaxed), LAYER.len() as u64);
    let mode = std::fs::metadata(&into).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // What is there already is nobody's to replace.
    let again = source.fetch(&image.layers[0], &into, &progress).await;
    assert!(matches!(again, Err(FetchBlobError::Create { .. })));
    assert_eq!(std::fs::read(&into).unwrap(), LAYER);
}

#[tokio::test]
async fn one_of_several_images_has_to_be_said() {
    let layout = Layout::new();
    let manifest = layout.image();
    layout.name(&[
        with_name(manifest.clone(), "v1"),
        with_name(manifest.clone(), "v2"),
    ]);
    assert!(layout.find(Some("v2")).await.is_ok());
    let error = layout.find(None).await.unwrap_err();
    assert!(matches!(&error, ReadImageError::Ambiguous { there } if there == "v1, v2"));
    let error = layout.find(Some("v3")).await.unwrap_err();
    assert!(matches!(&error, ReadImageError::NoSuchName { there, .. } if there == "v1, v2"));
    let platform = |architecture| {
        let mut entry = manifest.clone();
        entry["platform"] = json!({"os": "linux", "architecture": architecture});
        entry
    };
    layout.name(&[platform("arm64"), platform("amd64")]);
    assert!(layout.find(None).await.is_ok());
    let index =
        json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [platform("amd64")]});
    let index = layout.blob(OCI_INDEX, index.to_string().as_bytes());
    layout.name(&[index]);
    assert!(layout.find(None).await.is_ok());
}

#[tokio::test]
async fn no_link_is_followed() {
    let outside = tempfile::tempdir().unwrap();
    let layout = Layout::new();
    let layer = layout.find(None).await.unwrap().layers.remove(0);
    let blob = layout.path(&blob_path(LAYER));
    let elsewhere = outside.path().join("layer");
    std::fs::rename(&blob, &elsewhere).unwrap();
    // The right bytes, in the wrong place.
    symlink(&elsewhere, &blob).unwrap();
    let refused = |fetched| {
        let is_refused = |e: &_| matches!(e, ReadImageError::NotRegular { .. });
        matches!(fetched, Err(FetchBlobError::Disk(error)) if is_refused(&error))
    };
    assert!(refused(layout.fetch(&layer).await));
    std::fs::remove_file(&blob).unwrap();
    std::fs::copy(&elsewhere, &blob).unwrap();
    assert!(layout.fetch(&layer).await.is_ok());
    std::fs::remove_file(layout.path("fetched")).unwrap();
    let blobs = layout.path("blobs");
    let moved = outside.path().join("blobs");
    std::fs::rename(&blobs, &moved).unwrap();
    symlink(&moved, &blobs).unwrap();
    assert!(refused(layout.fetch(&layer).await));
    let error = layout.find(None).await.unwrap_err();
    assert!(matches!(error, ReadImageError::NotRegular { .. }));
}

#[tokio::test]
async fn a_pipe_or_a_directory_is_refused_at_once() {
    let layout = Layout::new();
    let layer = layout.find(None).await.unwrap().layers.remove(0);
    let blob = layout.path(&blob_path(LAYER));
    std::fs::remove_file(&blob).unwrap();
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &blob, FileType::Fifo, mode, 0).unwrap();
    let is_refused = |error: &FetchBlobError| {
        matches!(
            error,
            FetchBlobError::Disk(ReadImageError::NotRegular { .. })
        )
    };
    assert!(is_refused(&layout.fetch(&layer).await.unwrap_err()));
    std::fs::remove_file(&blob).unwrap();
    std::fs::create_dir(&blob).unwrap();
    assert!(is_refused(&layout.fetch(&layer).await.unwrap_err()));
    std::fs::remove_dir(&blob).unwrap();
    let error = layout.fetch(&layer).await.unwrap_err();
    assert!(matches!(
        error,
        FetchBlobError::Disk(ReadImageError::Missing { .. })
    ));
}

#[tokio::test]
async fn wrong_bytes_are_not_a_layer() {
    let layout = Layout::new();
    let layer = layout.find(None).await.unwrap().layers.remove(0);
    let path = blob_path(LAYER);
    layout.write(&path, b"the bytes of another");
    let error = layout.fetch(&layer).await.unwrap_err();
    assert!(
        matches!(error, FetchBlobError::OtherContent { .. }),
        "{error:?}"
    );
    for wrong in [&LAYER[1..], &[LAYER, b"x"].concat()] {
        layout.write(&path, wrong);
        let error = layout.fetch(&layer).await.unwrap_err();
        assert!(
            matches!(error, FetchBlobError::OtherSize { .. }),
            "{error:?}"
        );
    }
    layout.write(&path, LAYER);
    assert!(layout.fetch(&layer).await.is_ok());
}

#[tokio::test]
async fn wrong_documents_are_no_image() {
    let layout = Layout::empty();
    let manifest = layout.image();
    let mut other = manifest.clone();
    other["size"] = json!(1);
    layout.name(&[other]);
    let error = layout.find(None).await.unwrap_err();
    assert!(matches!(error, ReadImageError::OtherSize { wanted: 1, .. }));
    layout.name(std::slice::from_ref(&manifest));
    assert!(layout.find(None).await.is_ok());
    let digest: Digest = serde_json::from_value(manifest["digest"].clone()).unwrap();
    layout.write(&format!("blobs/sha256/{}", digest.hex()), b"{}");
    let error = layout.find(None).await.unwrap_err();
    assert!(matches!(error, ReadImageError::OtherContent { .. }));
    layout.write("index.json", &vec![b' '; (4 << 20) + 1]);
    let error = layout.find(None).await.unwrap_err();
    assert!(matches!(
        error,
        ReadImageError::Document(InvalidDocument::TooLong)
    ));
    layout.write("oci-layout", br#"{"imageLayoutVersion": "2.0.0"}"#);
    let error = layout.find(None).await.unwrap_err();
    assert!(matches!(error, ReadImageError::NotALayout));
    let missing = ImageOrigin::Layout {
        path: layout.path("nothing"),
        tag: None,
    };
    let error = missing.find().await.unwrap_err();
    assert!(matches!(
        error,
        FindImageError::Disk(ReadImageError::Open { .. })
    ));
}
