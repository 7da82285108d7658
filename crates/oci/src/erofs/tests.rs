//! What is written is read by the program of the format's own makers.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::Command;

use super::*;
use crate::data::DataWriter;
use crate::entry::{Content, Device, EntryKind, EntryPath, LayerEntry, Metadata};

const FIRST: u32 = 16;

struct Sketch<'a> {
    data: DataWriter<'a>,
    entries: Vec<LayerEntry>,
}

impl Sketch<'_> {
    fn add(&mut self, path: &str, kind: EntryKind) -> &mut Metadata {
        let number = u32::try_from(self.entries.len()).unwrap();
        self.entries.push(LayerEntry {
            path: EntryPath::parse(path.as_bytes()).unwrap(),
            kind,
            metadata: Metadata {
                mode: 0o4751,
                uid: 100_000 + number,
                gid: number,
                modified: (1_700_000_000 + i64::from(number), 5),
                attributes: BTreeMap::new(),
            },
        });
        &mut self.entries.last_mut().unwrap().metadata
    }

    fn file(&mut self, path: &str, content: &[u8]) -> &mut Metadata {
        let length = content.len() as u64;
        let content = self.data.copy(&mut &content[..], length).unwrap();
        self.add(path, EntryKind::File(content))
    }
}

/// Writes what `draw` draws, has it checked and unpacked, and hands over the result.
fn unpacked(draw: impl FnOnce(&mut Sketch<'_>), look: impl FnOnce(&Path)) {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let file = File::create_new(&image).unwrap();
    let mut sketch = Sketch {
        data: DataWriter::new(&file, FIRST),
        entries: Vec::new(),
    };
    draw(&mut sketch);
    let first = sketch.data.next();
    let mut tree = Tree::default();
    tree.apply(sketch.entries).unwrap();
    let written = write(&tree, &file, first, [7; 16]).unwrap();
    assert_eq!(file.metadata().unwrap().len(), written.bytes);
    let out = directory.path().join("out");
    let output = Command::new("fsck.erofs")
        .arg(format!("--extract={}", out.display()))
        .arg("--no-preserve-owner")
        .arg(&image)
        .output()
        .expect("fsck.erofs of the package erofs-utils");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    look(&out);
}

#[test]
fn files_links_and_directories_come_back() {
    let long = vec![b'x'; 100_000];
    let draw = |sketch: &mut Sketch<'_>| {
        sketch.add("", EntryKind::Directory).mode = 0o755;
        sketch.add("d", EntryKind::Directory).mode = 0o755;
        sketch.file("d/empty", b"");
        sketch.file("d/short", b"hello");
        sketch.file("d/long", &long);
        let target = EntryPath::parse(b"d/short").unwrap();
        sketch.add("again", EntryKind::HardLink(target));
        sketch.add("link", EntryKind::Symlink(b"d/short".to_vec()));
        sketch.add("pipe", EntryKind::Pipe);
        // Before the two dots in the order of names.
        sketch.file("-first", b"-");
    };
    unpacked(draw, |out| {
        assert_eq!(fs::read(out.join("d/empty")).unwrap(), b"");
        assert_eq!(fs::read(out.join("d/long")).unwrap(), long);
        assert_eq!(fs::read(out.join("link")).unwrap(), b"hello");
        assert_eq!(fs::read(out.join("-first")).unwrap(), b"-");
        assert!(
            fs::metadata(out.join("pipe"))
                .unwrap()
                .file_type()
                .is_fifo()
        );
        let short = fs::metadata(out.join("d/short")).unwrap();
        assert_eq!(
            (short.mode() & 0o7777, short.mtime()),
            (0o4751, 1_700_000_003)
        );
        assert_eq!(fs::read(out.join("again")).unwrap(), b"hello");
    });
}

#[test]
fn large_directories_and_long_links_come_back() {
    let target = "t/".repeat(2047);
    let draw = |sketch: &mut Sketch<'_>| {
        sketch.add("", EntryKind::Directory).mode = 0o755;
        for number in 0..3000 {
            let content = Content::default();
            sketch.add(
                &format!("many/a-rather-long-name-{number}"),
                EntryKind::File(content),
            );
        }
        for length in [1, 3900, 4000, 4031, 4032, 4033, target.len()] {
            let target = target.as_bytes()[..length].to_vec();
            sketch.add(&format!("links/{length}"), EntryKind::Symlink(target));
        }
        // Attributes push what follows an inode over the end of its block.
        for bytes in [1, 3000, 4090, 40_000] {
            let metadata = sketch.add(&format!("with/{bytes}"), EntryKind::Symlink(b"to".to_vec()));
            let attribute = (b"user.x".to_vec(), vec![1; bytes]);
            metadata.attributes = BTreeMap::from([attribute]);
        }
    };
    unpacked(draw, |out| {
        assert_eq!(fs::read_dir(out.join("many")).unwrap().count(), 3000);
        for length in [1, 3900, 4000, 4031, 4032, 4033, target.len()] {
            let found = fs::read_link(out.join(format!("links/{length}"))).unwrap();
            assert_eq!(found.to_str().unwrap(), &target[..length]);
        }
        for bytes in [1, 3000, 4090, 40_000] {
            let found = fs::read_link(out.join(format!("with/{bytes}"))).unwrap();
            assert_eq!(found.to_str().unwrap(), "to");
        }
    });
}

#[test]
fn deep_trees_come_back() {
    let deep = "d/".repeat(400);
    let name = format!("{deep}f");
    let draw = |sketch: &mut Sketch<'_>| {
        sketch.add("", EntryKind::Directory).mode = 0o755;
        sketch.file(&name, b"deep");
    };
    unpacked(draw, |out| {
        assert_eq!(fs::read(out.join(&name)).unwrap(), b"deep");
    });
}

#[test]
fn device_numbers_have_the_kernels_form() {
    let device = |major, minor| inode::device_number(Device { major, minor });
    assert_eq!(device(1, 3), 0x103);
    assert_eq!(device(254, 0x12345), 0x1230_fe45);
}
