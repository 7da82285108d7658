//! Layers that lie about themselves, that lead elsewhere, and that are too much.

use std::os::unix::fs::MetadataExt as _;

use dayfly_oci::Digest;
use tar::EntryType;

use crate::image::{Layer, Tar, layout};
use crate::workshop::{Outcome, Workshop};

/// Bytes of a block, as the kernel counts them for a file.
const STAT_BLOCK: u64 = 512;

fn run(layers: &[Layer]) -> Option<Outcome> {
    Some(Workshop::new()?.run_layers(layers))
}

fn refused(layers: &[Layer], reason: &str) {
    if let Some(outcome) = run(layers) {
        outcome.assert_refused(reason);
    }
}

fn small() -> Vec<u8> {
    Tar::new().file("name", b"content").done()
}

#[test]
fn other_bytes_than_an_image_says_are_refused() {
    let mut tampered = Layer::plain(small());
    tampered.stored[512] ^= 1;
    refused(&[tampered], "has the digest");
    let wrong = Layer {
        unpacked: Digest::of(b"another"),
        ..Layer::gzip(&small())
    };
    refused(&[wrong], "unpacks to");
    for size in [1, 1 << 30] {
        let wrong = Layer {
            size,
            ..Layer::plain(small())
        };
        refused(&[wrong], "another size");
    }
}

#[test]
fn other_documents_than_an_image_names_are_refused() {
    let mut files = layout(&[Layer::plain(small())]);
    // Behind the mark and the layer: the config, then the manifest.
    for (at, part) in [(3, "has the digest"), (2, "has the digest")] {
        let Some(workshop) = Workshop::new() else {
            return;
        };
        let kept = files[at].1.clone();
        files[at].1.push(b' ');
        workshop
            .run_layout(&files, crate::workshop::ROOM)
            .assert_refused(part);
        files[at].1 = kept;
    }
}

#[test]
fn what_is_no_archive_is_refused() {
    let noise: Vec<u8> = (0..4096_u32)
        .map(|n| n.wrapping_mul(97).to_le_bytes()[1])
        .collect();
    refused(&[Layer::plain(noise.clone())], "cannot be read");
    let unpacked = Digest::of(&noise);
    let not_gzip = Layer {
        kind: crate::image::GZIP,
        unpacked,
        ..Layer::plain(noise)
    };
    refused(&[not_gzip], "cannot be read");
}

#[test]
fn an_image_without_layers_touches_nothing() {
    if let Some(outcome) = run(&[]) {
        outcome.assert_made();
    }
}

#[test]
fn ways_up_and_out_are_refused_or_stay_in_the_image() {
    let Some(workshop) = Workshop::new() else {
        return;
    };
    let up = "../".repeat(12);
    for name in [
        "../planted",
        "a/../../planted",
        &format!("{up}tmp/planted"),
        "..",
    ] {
        refused(
            &[Layer::plain(Tar::new().file(name, b"x").done())],
            "leads upwards",
        );
    }
    let outside = workshop.outside().display().to_string();
    // By an absolute path, over links to a directory, and over one of the layer below.
    let absolute = Tar::new().file(&format!("{outside}/planted"), b"x").done();
    let over_link = Tar::new()
        .link(EntryType::Symlink, "way", &outside)
        .file("way/planted", b"x")
        .done();
    let over_relative = Tar::new()
        .link(
            EntryType::Symlink,
            "back",
            &format!("{up}{}", &outside[1..]),
        )
        .done();
    let second = Tar::new().file("back/planted", b"x").done();
    let layers = [absolute, over_link, over_relative, second].map(Layer::plain);
    workshop.run_layers(&layers).assert_made();
    let planted: Vec<_> = std::fs::read_dir(workshop.outside()).unwrap().collect();
    assert!(planted.is_empty(), "{planted:?}");
}

#[test]
fn links_to_nothing_and_in_circles_are_refused() {
    let hard = Tar::new()
        .link(EntryType::Link, "mine", "/etc/passwd")
        .done();
    refused(&[Layer::plain(hard)], "is not there or is a directory");
    let up = Tar::new()
        .link(EntryType::Link, "mine", "../../etc/passwd")
        .done();
    refused(&[Layer::plain(up)], "leads upwards");
    let circle = Tar::new()
        .link(EntryType::Symlink, "a", "b")
        .link(EntryType::Symlink, "b", "a")
        .file("a/file", b"x")
        .done();
    refused(&[Layer::plain(circle)], "too many links");
}

#[test]
fn devices_stay_in_the_image() {
    let bytes = Tar::new()
        .device(EntryType::Char, "null", 1, 3)
        .device(EntryType::Block, "disk", 8, 0)
        .device(EntryType::Char, "memory", 1, 1)
        .entry(EntryType::Fifo, "pipe", 0, b"")
        .done();
    if let Some(outcome) = run(&[Layer::plain(bytes)]) {
        outcome.assert_made();
    }
    let mark = Tar::new().device(EntryType::Char, "mark", 0, 0).done();
    refused(&[Layer::plain(mark)], "0:0");
}

#[test]
fn sizes_that_are_lies_are_refused() {
    let long = Tar::new()
        .entry(EntryType::Regular, "long", 1 << 32, b"x")
        .done();
    refused(&[Layer::plain(long)], "no room");
    let cut = Tar::new()
        .entry(EntryType::Regular, "cut", 1 << 20, b"x")
        .done();
    refused(&[Layer::plain(cut)], "cannot be read");
    let twice = Tar::new()
        .entry(EntryType::XHeader, "pax", 11, b"11 size=99\n")
        .file("file", b"x")
        .done();
    refused(&[Layer::plain(twice)], "contradict");
    let full = Tar::new()
        .entry(EntryType::Directory, "full/", 600, &[0; 600])
        .done();
    refused(&[Layer::plain(full)], "has content");
}

#[test]
fn a_bomb_takes_no_more_than_its_room() {
    let room = 4 << 20;
    let zeros = vec![0; 8 << 20];
    let many = (0..4).fold(Tar::new(), |tar, number| {
        tar.file(&format!("zeros-{number}"), &zeros)
    });
    let bomb = Layer::gzip(&many.done());
    assert!(bomb.stored.len() < 1 << 20, "it is no bomb");
    let Some(workshop) = Workshop::new() else {
        return;
    };
    let outcome = workshop.run_layout(&layout(&[bomb]), room);
    outcome.assert_refused("no room");
    let used = workshop
        .disk()
        .metadata()
        .map_or(0, |about| about.blocks() * STAT_BLOCK);
    assert!(used <= room + (1 << 20), "{used}");
}

#[test]
fn a_hundred_thousand_entries_are_not_a_hundred_thousand_files() {
    let mut tar = Tar::new();
    for number in 0..100_000 {
        tar = tar.file(&format!("d{}/f{number}", number % 100), b"");
    }
    if let Some(outcome) = run(&[Layer::plain(tar.done())]) {
        outcome.assert_made();
        let calls = outcome.trace.paths().len();
        assert!(calls < 200, "{calls}");
    }
}
