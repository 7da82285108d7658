//! Images that nobody should make.

use std::io::Write as _;

use dayfly_oci::Digest;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub(crate) const PLAIN: &str = "application/vnd.oci.image.layer.v1.tar";
pub(crate) const GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A layer, and what its image says of it.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) kind: &'static str,
    pub(crate) stored: Vec<u8>,
    /// The digest of what it unpacks to.
    pub(crate) unpacked: Digest,
    /// By which it is named, and its size.
    pub(crate) named: Digest,
    pub(crate) size: u64,
}

impl Layer {
    pub(crate) fn plain(bytes: Vec<u8>) -> Self {
        let digest = Digest::of(&bytes);
        Self {
            kind: PLAIN,
            unpacked: digest.clone(),
            named: digest,
            size: bytes.len() as u64,
            stored: bytes,
        }
    }

    pub(crate) fn gzip(bytes: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        let unpacked = Digest::of(bytes);
        Self {
            kind: GZIP,
            unpacked,
            ..Self::plain(encoder.finish().unwrap())
        }
    }
}

/// Files of an OCI layout, by path.
pub(crate) fn layout(layers: &[Layer]) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![(
        "oci-layout".to_owned(),
        br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec(),
    )];
    let mut add = |bytes: Vec<u8>, name: &Digest| {
        files.push((format!("blobs/sha256/{}", name.hex()), bytes));
    };
    for layer in layers {
        add(layer.stored.clone(), &layer.named);
    }
    let config = config(layers).to_string().into_bytes();
    let described = descriptor(CONFIG, &config);
    add(config.clone(), &Digest::of(&config));
    let described_layers: Vec<Value> = layers
        .iter()
        .map(|layer| {
            json!({"mediaType": layer.kind, "digest": layer.named.to_string(), "size": layer.size})
        })
        .collect();
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": described,
        "layers": described_layers});
    let manifest = manifest.to_string().into_bytes();
    add(manifest.clone(), &Digest::of(&manifest));
    let index = json!({"schemaVersion": 2, "manifests": [descriptor(MANIFEST, &manifest)]});
    files.push(("index.json".to_owned(), index.to_string().into_bytes()));
    files
}

fn descriptor(kind: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": Digest::of(bytes).to_string(), "size": bytes.len()})
}

pub(crate) fn config(layers: &[Layer]) -> Value {
    let unpacked: Vec<String> = layers
        .iter()
        .map(|layer| layer.unpacked.to_string())
        .collect();
    json!({"architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": unpacked}})
}

/// Entries of a tar whose names are written as they are, which the library would not do.
pub(crate) struct Tar(Builder<Vec<u8>>);

impl Tar {
    pub(crate) fn new() -> Self {
        Self(Builder::new(Vec::new()))
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.0.into_inner().unwrap()
    }

    pub(crate) fn entry(mut self, kind: EntryType, name: &str, size: u64, content: &[u8]) -> Self {
        let mut header = header(kind, size);
        put(&mut header.as_old_mut().name, name);
        header.set_cksum();
        self.0.append(&header, content).unwrap();
        self
    }

    pub(crate) fn file(self, name: &str, content: &[u8]) -> Self {
        self.entry(EntryType::Regular, name, content.len() as u64, content)
    }

    pub(crate) fn directory(self, name: &str) -> Self {
        self.entry(EntryType::Directory, name, 0, b"")
    }

    pub(crate) fn link(mut self, kind: EntryType, name: &str, target: &str) -> Self {
        let mut header = header(kind, 0);
        put(&mut header.as_old_mut().name, name);
        put(&mut header.as_old_mut().linkname, target);
        header.set_cksum();
        self.0.append(&header, &b""[..]).unwrap();
        self
    }

    pub(crate) fn device(mut self, kind: EntryType, name: &str, major: u32, minor: u32) -> Self {
        let mut header = header(kind, 0);
        put(&mut header.as_old_mut().name, name);
        header.set_device_major(major).unwrap();
        header.set_device_minor(minor).unwrap();
        header.set_cksum();
        self.0.append(&header, &b""[..]).unwrap();
        self
    }
}

fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o4755);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(5);
    header
}

fn put(field: &mut [u8], text: &str) {
    field[..text.len()].copy_from_slice(text.as_bytes());
}
