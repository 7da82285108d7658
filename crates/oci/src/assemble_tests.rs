use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::Command;

use dayfly_types::limits::IMAGE_PARTS_MAX;
use serde_json::json;
use tar::{Builder, Header};

use super::*;
use crate::digest::Digest;

const MIB: usize = 1 << 20;
const UNIT: usize = 64 << 10;
const _: () = assert!(UNIT as u64 == IMAGE_PART_UNIT_BYTES);

/// Bytes that differ from block to block, and from those of another seed.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed * 2 + 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.to_be_bytes()[3] | 1
    };
    (0..bytes).map(|_| next()).collect()
}

fn layer(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = Header::new_ustar();
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

/// The files that the disk of an image is made in.
struct Made {
    directory: tempfile::TempDir,
    parts: Vec<PathBuf>,
}

async fn made(layers: &[Vec<u8>]) -> Made {
    let directory = tempfile::tempdir().unwrap();
    let layout = directory.path().join("layout");
    std::fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
    let blob = |kind: &str, bytes: &[u8]| {
        let digest = Digest::of(bytes);
        std::fs::write(layout.join("blobs/sha256").join(digest.hex()), bytes).unwrap();
        let kind = format!("application/vnd.oci.image.{kind}");
        json!({"mediaType": kind, "digest": digest, "size": bytes.len()})
    };
    let unpacked: Vec<Digest> = layers.iter().map(|layer| Digest::of(layer)).collect();
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": unpacked},
    });
    let config = blob("config.v1+json", config.to_string().as_bytes());
    let layers = layers.iter().map(|layer| blob("layer.v1.tar", layer));
    let layers: Vec<_> = layers.collect();
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers});
    let manifest = blob("manifest.v1+json", manifest.to_string().as_bytes());
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});
    std::fs::write(layout.join("index.json"), index.to_string()).unwrap();
    let version = r#"{"imageLayoutVersion": "1.0.0"}"#;
    std::fs::write(layout.join("oci-layout"), version).unwrap();
    let source = ImageOrigin::Layout {
        path: layout,
        tag: None,
    };
    let image = source.find().await.unwrap();
    let (place, aside) = (directory.path(), directory.path().join("aside"));
    let budget = Budget::default();
    let written = assemble(&source, &image, &aside, place, budget, &|_, _| {});
    let written = written.await.unwrap();
    let parts = (0..).map(|index| place.join(file_names::disk_part(index)));
    let parts: Vec<PathBuf> = parts.take_while(|path| path.exists()).collect();
    let length = parts.last().unwrap().metadata().unwrap().len();
    assert_eq!(length, written.bytes);
    Made { directory, parts }
}

impl Made {
    fn read(&self, index: usize) -> Vec<u8> {
        std::fs::read(&self.parts[index]).unwrap()
    }

    /// The disk that an engine shows: each part up to its end, and the superblock of the last.
    fn whole(&self) -> PathBuf {
        let path = self.directory.path().join("whole");
        let whole = File::create_new(&path).unwrap();
        let mut below = UNIT;
        for index in 0..self.parts.len() {
            let part = self.read(index);
            whole.write_all_at(&part[below..], below as u64).unwrap();
            below = part.len();
        }
        let last = self.read(self.parts.len() - 1);
        let start = &last[..UNIT];
        whole.write_all_at(start, 0).unwrap();
        path
    }

    /// Has the disk unpacked by the program of the format's makers.
    fn assert_files(&self, files: &[(&str, &[u8])]) {
        let out = self.directory.path().join("out");
        let output = Command::new("fsck.erofs")
            .arg(format!("--extract={}", out.display()))
            .arg(self.whole())
            .output();
        let Ok(output) = output else {
            println!("skipped: no fsck.erofs");
            return;
        };
        assert!(output.status.success(), "{output:?}");
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), files.len());
        for (name, content) in files {
            assert!(std::fs::read(out.join(name)).unwrap() == *content, "{name}");
        }
    }
}

#[tokio::test]
async fn images_with_the_same_first_layers_begin_with_the_same_files() {
    let (base, middle) = (noise(1, MIB + 4097), noise(2, MIB));
    let own = [noise(3, 5000), noise(4, 70_000)];
    let zeros = [0; 200_000];
    let first = layer(&[("a", &base), ("zeros", &zeros), ("hidden", &middle)]);
    let second = layer(&[("b", &middle), (".wh.hidden", b"")]);
    let images = own.each_ref().map(|own| {
        let third = layer(&[("own", own)]);
        vec![first.clone(), second.clone(), third]
    });
    let [one, other] = [made(&images[0]).await, made(&images[1]).await];
    // The base alone begins as they do.
    let alone = made(&images[0][..1]).await;
    assert_eq!((one.parts.len(), other.parts.len()), (3, 3));
    assert_eq!(alone.parts.len(), 2);
    assert!(one.read(0) == other.read(0) && one.read(0) == alone.read(0));
    assert!(one.read(1) == other.read(1));
    assert!(one.read(2) != other.read(2));
    let own_bytes = one.parts[2].metadata().unwrap().blocks() * 512;
    assert!(own_bytes < 200 << 10, "{own_bytes}");
    for (image, own) in [(&one, &own[0]), (&other, &own[1])] {
        let files: [(&str, &[u8]); 4] = [
            ("a", &base),
            ("zeros", &zeros),
            ("b", &middle),
            ("own", own),
        ];
        image.assert_files(&files);
    }
    alone.assert_files(&[("a", &base), ("zeros", &zeros), ("hidden", &middle)]);
}

#[tokio::test]
async fn small_layers_are_in_one_file_and_what_they_hide_takes_no_room() {
    let (big, small) = (noise(1, MIB / 2), noise(2, 5000));
    let layers = [
        layer(&[("a", &big), ("b", &small)]),
        layer(&[(".wh.a", b"")]),
    ];
    let image = made(&layers).await;
    assert_eq!(image.parts.len(), 1);
    let taken = image.parts[0].metadata().unwrap().blocks() * 512;
    assert!(taken < 100 << 10, "{taken}");
    image.assert_files(&[("b", &small)]);
}

#[tokio::test]
async fn a_disk_has_no_more_parts_than_an_engine_is_given() {
    let names: Vec<String> = (0..=IMAGE_PARTS_MAX)
        .map(|number| format!("file-{number}"))
        .collect();
    let content = noise(1, MIB + 4096);
    let layers: Vec<Vec<u8>> = names
        .iter()
        .map(|name| layer(&[(name, &content)]))
        .collect();
    let image = made(&layers).await;
    assert_eq!(image.parts.len(), IMAGE_PARTS_MAX);
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), content.as_slice()))
        .collect();
    image.assert_files(&files);
    for path in &image.parts[..IMAGE_PARTS_MAX - 1] {
        let length = path.metadata().unwrap().len();
        assert!(length.is_multiple_of(IMAGE_PART_UNIT_BYTES));
    }
}
