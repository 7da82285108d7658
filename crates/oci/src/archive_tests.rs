use std::io::Write as _;

use serde_json::{Value, json};
use tar::{Builder, Header};

use super::*;
use crate::blob::FetchBlobError;
use crate::source::{FindImageError, ImageOrigin};

const LAYER: &[u8] = b"the bytes of a plain layer";

struct Saved {
    tar: Builder<Vec<u8>>,
}

impl Saved {
    fn new() -> Self {
        let tar = Builder::new(Vec::new());
        Self { tar }
    }

    fn add(mut self, name: &str, content: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        self.tar.append_data(&mut header, name, content).unwrap();
        self
    }

    fn link(mut self, name: &str, target: &str) -> Self {
        let mut header = Header::new_gnu();
        header.set_size(0);
        header.set_entry_type(EntryType::Symlink);
        self.tar.append_link(&mut header, name, target).unwrap();
        self
    }

    fn with_image(self, layer_name: &str) -> Self {
        let (name, content) = config(LAYER);
        let saved = json!([{"Config": name, "RepoTags": ["app:1"], "Layers": [layer_name]}]);
        self.add(&name, content.as_bytes())
            .add("manifest.json", saved.to_string().as_bytes())
    }

    fn end(self) -> Ended {
        Ended::of(&self.tar.into_inner().unwrap())
    }
}

struct Ended {
    file: tempfile::NamedTempFile,
    into: tempfile::TempDir,
}

impl Ended {
    fn of(bytes: &[u8]) -> Self {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let into = tempfile::tempdir().unwrap();
        Self { file, into }
    }

    fn source(&self, name: Option<&str>) -> ImageOrigin {
        ImageOrigin::Archive {
            path: self.file.path().to_owned(),
            name: name.map(str::to_owned),
        }
    }

    async fn find(&self, name: Option<&str>) -> Result<Image, ReadImageError> {
        self.source(name).find().await.map_err(|error| {
            let FindImageError::Disk(error) = error else {
                panic!("{error:?}");
            };
            error
        })
    }

    async fn fetch(&self, layer: &LayerBlob) -> Result<Vec<u8>, FetchBlobError> {
        let into = self.into.path().join("layer");
        self.source(None).fetch(layer, &into, &|_| ()).await?;
        Ok(std::fs::read(&into).unwrap())
    }
}

/// Name and content of a config for an image with one layer.
fn config(content: &[u8]) -> (String, String) {
    let config = json!({
        "architecture": "amd64", "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": [Digest::of(content)]},
    });
    let config = config.to_string();
    (
        format!("{}.json", Digest::of(config.as_bytes()).hex()),
        config,
    )
}

#[tokio::test]
async fn what_docker_saves_is_found_and_read() {
    // As old archives have it, with a link that nobody needs.
    let saved = Saved::new()
        .add("abc/layer.tar", LAYER)
        .link("def/layer.tar", "../abc/layer.tar");
    let saved = saved.with_image("abc/layer.tar").end();
    let image = saved.find(Some("app:1")).await.unwrap();
    assert_eq!(image, saved.find(None).await.unwrap());
    assert_eq!(image.manifest, Digest::of(config(LAYER).1.as_bytes()));
    assert_eq!(image.layers[0].compression, LayerCompression::None);
    assert_eq!(image.layers[0].digest, Digest::of(LAYER));
    assert_eq!(saved.fetch(&image.layers[0]).await.unwrap(), LAYER);
    let error = saved.find(Some("app:2")).await.unwrap_err();
    assert!(matches!(&error, ReadImageError::NoSuchName { there, .. } if there == "app:1"));
}

#[tokio::test]
async fn long_names_and_compressed_layers_are_read() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(LAYER).unwrap();
    let packed = packed.finish().unwrap();
    let name = format!("{}/layer.tar.gz", "a".repeat(200));
    let saved = Saved::new().add(&name, &packed).with_image(&name).end();
    let layer = saved.find(None).await.unwrap().layers.remove(0);
    assert_eq!(layer.compression, LayerCompression::Gzip);
    assert_eq!(layer.digest, Digest::of(&packed));
    assert_eq!(layer.diff_id, Digest::of(LAYER));
    assert_eq!(saved.fetch(&layer).await.unwrap(), packed);
}

#[tokio::test]
async fn a_tar_of_a_layout_is_read() {
    let (_, config) = config(LAYER);
    let blob = |media_type: &str, content: &[u8]| -> Value {
        json!({"mediaType": media_type, "digest": Digest::of(content), "size": content.len()})
    };
    let kind = |name: &str| format!("application/vnd.oci.image.{name}");
    let manifest = json!({
        "schemaVersion": 2,
        "config": blob(&kind("config.v1+json"), config.as_bytes()),
        "layers": [blob(&kind("layer.v1.tar"), LAYER)],
    });
    let manifest = manifest.to_string();
    let entry = blob(&kind("manifest.v1+json"), manifest.as_bytes());
    let index = json!({"schemaVersion": 2, "manifests": [entry]}).to_string();
    let name = |content: &[u8]| format!("./{}", blob_name(&Digest::of(content)));
    let saved = Saved::new()
        .add("./oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)
        .add("./index.json", index.as_bytes())
        .add(&name(manifest.as_bytes()), manifest.as_bytes())
        .add(&name(config.as_bytes()), config.as_bytes())
        .add(&name(LAYER), LAYER)
        .end();
    let image = saved.find(None).await.unwrap();
    assert_eq!(image.manifest, Digest::of(manifest.as_bytes()));
    assert_eq!(saved.fetch(&image.layers[0]).await.unwrap(), LAYER);
}

#[tokio::test]
async fn links_for_layers_and_missing_layers_are_refused() {
    let linked = Saved::new().add("a.tar", LAYER).link("b.tar", "a.tar");
    let error = linked
        .with_image("b.tar")
        .end()
        .find(None)
        .await
        .unwrap_err();
    assert!(matches!(&error, ReadImageError::NotRegular { name } if name == "b.tar"));
    for name in ["/etc/passwd", "../a.tar", "a.tar"] {
        let error = Saved::new()
            .with_image(name)
            .end()
            .find(None)
            .await
            .unwrap_err();
        assert!(matches!(error, ReadImageError::Missing { .. }), "{error:?}");
    }
    let good = Saved::new().add("a.tar", LAYER).with_image("a.tar").end();
    assert!(good.find(None).await.is_ok());
}

#[tokio::test]
async fn a_layer_or_a_config_with_other_bytes_is_refused() {
    let saved = Saved::new()
        .add("a.tar", &LAYER.to_ascii_uppercase())
        .with_image("a.tar")
        .end();
    let layer = saved.find(None).await.unwrap().layers.remove(0);
    let error = saved.fetch(&layer).await.unwrap_err();
    assert!(matches!(error, FetchBlobError::OtherContent { .. }));
    assert!(!saved.into.path().join("layer").exists());
    let (name, content) = config(LAYER);
    let with_config = |name: &str, content: &str| {
        let manifest = json!([{"Config": name, "RepoTags": null, "Layers": ["a.tar"]}]);
        let saved = Saved::new()
            .add("a.tar", LAYER)
            .add(name, content.as_bytes());
        saved
            .add("manifest.json", manifest.to_string().as_bytes())
            .end()
    };
    assert!(with_config(&name, &content).find(None).await.is_ok());
    let error = with_config(&name, &format!("{content} "))
        .find(None)
        .await
        .unwrap_err();
    assert!(matches!(error, ReadImageError::OtherContent { .. }));
    let error = with_config("config.json", &content)
        .find(None)
        .await
        .unwrap_err();
    assert!(matches!(error, ReadImageError::ConfigName { .. }));
}

#[tokio::test]
async fn what_is_no_archive_is_refused() {
    let twice = Saved::new()
        .add("a.tar", LAYER)
        .add("./a.tar", b"x")
        .with_image("a.tar")
        .end();
    let error = twice.find(None).await.unwrap_err();
    assert!(matches!(&error, ReadImageError::Twice { name } if name == "a.tar"));
    let whole = Saved::new().with_image("a.tar").add("a.tar", &[7; 4096]);
    let bytes = whole.tar.into_inner().unwrap();
    let cut = Ended::of(&bytes[..bytes.len() - 4096]);
    let error = cut.find(None).await.unwrap_err();
    assert!(
        matches!(&error, ReadImageError::Short { name } if name == "a.tar"),
        "{error:?}"
    );
    for bytes in [&b""[..], b"no tar", &[0x1f, 0x8b, 8, 0], &[7; 4096]] {
        let error = Ended::of(bytes).find(None).await.unwrap_err();
        assert!(matches!(error, ReadImageError::NotAnArchive), "{error:?}");
    }
    let long = Saved::new()
        .add(&"a/".repeat(2500), b"")
        .with_image("a.tar")
        .end();
    let error = long.find(None).await.unwrap_err();
    assert!(matches!(error, ReadImageError::TooMany), "{error:?}");
    let pipe = ImageOrigin::Archive {
        path: "/dev/null".into(),
        name: None,
    };
    let error = pipe.find().await.unwrap_err();
    assert!(matches!(
        error,
        FindImageError::Disk(ReadImageError::NotAnArchive)
    ));
}
