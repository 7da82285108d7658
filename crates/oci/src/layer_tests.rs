use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use tar::{Builder, EntryType};

use super::*;

fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o4755);
    header.set_uid(3);
    header.set_gid(4);
    header.set_mtime(5);
    header
}

/// An entry whose name is written as it is, which the library would not do.
fn raw(builder: &mut Builder<Vec<u8>>, name: &[u8], mut header: Header, content: &[u8]) {
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_cksum();
    builder.append(&header, content).unwrap();
}

fn archive(write: impl FnOnce(&mut Builder<Vec<u8>>)) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    write(&mut builder);
    builder.into_inner().unwrap()
}

struct Outcome {
    data: File,
    result: Result<Vec<LayerEntry>, ReadLayerError>,
}

fn read(bytes: &[u8]) -> Outcome {
    read_with(
        bytes,
        LayerCompression::None,
        &Digest::of(bytes),
        &mut Budget::default(),
    )
}

fn read_with(
    packed: &[u8],
    compression: LayerCompression,
    unpacked: &Digest,
    budget: &mut Budget,
) -> Outcome {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(packed).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let data = tempfile::tempfile().unwrap();
    let mut writer = DataWriter::new(&data, 1);
    let result = read_layer(&file, compression, unpacked, &mut writer, budget);
    Outcome { data, result }
}

fn kinds(bytes: &[u8]) -> Vec<(String, EntryKind)> {
    let entries = read(bytes).result.unwrap();
    let pair = |entry: LayerEntry| (entry.path.to_string(), entry.kind);
    entries.into_iter().map(pair).collect()
}

fn refused(bytes: &[u8]) -> EntryProblem {
    let refused = read(bytes).result.unwrap_err();
    let ReadLayerError::Entry { problem, .. } = refused else {
        panic!("{refused:?}");
    };
    problem
}

#[test]
fn every_kind_of_entry_is_read() {
    let bytes = archive(|builder| {
        raw(builder, b"./", header(EntryType::Directory, 0), b"");
        raw(builder, b"a/", header(EntryType::Directory, 0), b"");
        raw(builder, b"/a/f", header(EntryType::Regular, 5), b"hello");
        let mut link = header(EntryType::Link, 0);
        link.set_link_name("a/f").unwrap();
        raw(builder, b"a/l", link, b"");
        let mut link = header(EntryType::Symlink, 0);
        link.set_link_name("../x").unwrap();
        raw(builder, b"a/s", link, b"");
        let mut device = header(EntryType::Char, 0);
        device.set_device_major(1).unwrap();
        device.set_device_minor(3).unwrap();
        raw(builder, b"null", device, b"");
        raw(builder, b"p", header(EntryType::Fifo, 0), b"");
        raw(builder, b"a/.wh.old", header(EntryType::Regular, 0), b"");
        raw(
            builder,
            b"a/.wh..wh..opq",
            header(EntryType::Regular, 0),
            b"",
        );
    });
    let Outcome { data, result } = read(&bytes);
    let entries = result.unwrap();
    let content = Content {
        block: 1,
        length: 5,
    };
    let null = Device { major: 1, minor: 3 };
    let target = EntryPath::parse(b"a/f").unwrap();
    let expected = [
        ("/", EntryKind::Directory),
        ("/a", EntryKind::Directory),
        ("/a/f", EntryKind::File(content)),
        ("/a/l", EntryKind::HardLink(target)),
        ("/a/s", EntryKind::Symlink(b"../x".to_vec())),
        ("/null", EntryKind::CharacterDevice(null)),
        ("/p", EntryKind::Pipe),
        ("/a/old", EntryKind::Whiteout),
        ("/a", EntryKind::Opaque),
    ];
    let found = entries
        .iter()
        .map(|entry| (entry.path.to_string(), &entry.kind));
    for ((path, kind), (expected_path, expected_kind)) in found.zip(&expected) {
        assert_eq!((path.as_str(), kind), (*expected_path, expected_kind));
    }
    assert_eq!(entries.len(), expected.len());
    let metadata = &entries[2].metadata;
    assert_eq!((metadata.mode, metadata.uid, metadata.gid), (0o4755, 3, 4));
    let mut content = [0; 5];
    data.read_exact_at(&mut content, 4096).unwrap();
    assert_eq!(&content, b"hello");
}

fn pax(builder: &mut Builder<Vec<u8>>, records: &[u8]) {
    let size = records.len() as u64;
    raw(builder, b"pax", header(EntryType::XHeader, size), records);
}

#[test]
fn extended_headers_speak_of_the_entry_behind_them() {
    let bytes = archive(|builder| {
        pax(
            builder,
            b"15 path=long/f\n13 uid=70000\n25 SCHILY.xattr.user.a=b\n",
        );
        raw(builder, b"short", header(EntryType::Regular, 2), b"hi");
        raw(builder, b"other", header(EntryType::Regular, 0), b"");
        let name = [b'n'; 200];
        raw(
            builder,
            b"l",
            header(EntryType::GNULongName, 201),
            &[&name[..], b"\0"].concat(),
        );
        raw(builder, b"nnn", header(EntryType::Regular, 0), b"");
    });
    let entries = read(&bytes).result.unwrap();
    assert_eq!(entries[0].path.to_string(), "/long/f");
    assert_eq!(entries[0].metadata.uid, 70000);
    assert_eq!(entries[0].metadata.attributes[&b"user.a"[..]], b"b");
    assert_eq!(entries[1].path.to_string(), "/other");
    assert_eq!(entries[1].metadata.uid, 3);
    assert_eq!(entries[2].path.to_string().len(), 201);
}

#[test]
fn archives_that_readers_could_disagree_about_are_refused() {
    let sizes = archive(|builder| {
        pax(builder, b"9 size=3\n");
        raw(builder, b"f", header(EntryType::Regular, 1024), &[7; 1024]);
    });
    assert_eq!(refused(&sizes), EntryProblem::Contradiction);
    let twice = archive(|builder| {
        pax(builder, b"9 path=a\n");
        pax(builder, b"9 path=b\n");
        raw(builder, b"f", header(EntryType::Regular, 0), b"");
    });
    assert_eq!(refused(&twice), EntryProblem::Contradiction);
    let content = archive(|builder| {
        raw(builder, b"d/", header(EntryType::Directory, 512), &[0; 512]);
    });
    assert_eq!(refused(&content), EntryProblem::UnexpectedContent);
    let global = archive(|builder| {
        raw(
            builder,
            b"g",
            header(EntryType::XGlobalHeader, 10),
            b"10 path=x\n",
        );
    });
    assert_eq!(refused(&global), EntryProblem::GlobalHeader);
    let dangling = archive(|builder| pax(builder, b"9 path=a\n"));
    assert_eq!(refused(&dangling), EntryProblem::Dangling);
    let mut hidden = archive(|builder| raw(builder, b"f", header(EntryType::Regular, 0), b""));
    let second = archive(|builder| raw(builder, b"g", header(EntryType::Regular, 0), b""));
    hidden.extend(second);
    assert!(matches!(
        read(&hidden).result,
        Err(ReadLayerError::Trailing)
    ));
}

#[test]
fn tricks_are_refused() {
    let entry =
        |name: &'static [u8], kind| archive(|builder| raw(builder, name, header(kind, 0), b""));
    for name in [&b"../x"[..], b"a/../../x", b"/.."] {
        let bytes = archive(|builder| raw(builder, name, header(EntryType::Regular, 0), b""));
        assert!(matches!(read(&bytes).result, Err(ReadLayerError::Path(_))));
    }
    assert_eq!(
        refused(&entry(b".", EntryType::Regular)),
        EntryProblem::Root
    );
    assert_eq!(
        refused(&entry(b"s", EntryType::GNUSparse)),
        EntryProblem::Sparse
    );
    assert_eq!(
        refused(&entry(b"?", EntryType::new(b'Z'))),
        EntryProblem::Type
    );
    assert_eq!(
        refused(&entry(b"s", EntryType::Symlink)),
        EntryProblem::Link
    );
    assert_eq!(
        refused(&entry(b".wh.", EntryType::Regular)),
        EntryProblem::Whiteout
    );
    assert_eq!(
        refused(&entry(b".wh...", EntryType::Regular)),
        EntryProblem::Whiteout
    );
    assert_eq!(
        refused(&entry(b".wh..wh.plnk", EntryType::Regular)),
        EntryProblem::Whiteout
    );
    assert_eq!(
        refused(&entry(b".wh.d", EntryType::Directory)),
        EntryProblem::Whiteout
    );
    let long = archive(|builder| {
        let size = IMAGE_EXTENSION_BYTES_MAX + 1;
        let bytes = vec![b'x'; usize::try_from(size).unwrap()];
        raw(builder, b"l", header(EntryType::GNULongName, size), &bytes);
    });
    assert_eq!(refused(&long), EntryProblem::LongExtension);
    let mut damaged = entry(b"f", EntryType::Regular);
    damaged[0] ^= 1;
    assert!(matches!(
        read(&damaged).result,
        Err(ReadLayerError::Read(_))
    ));
}

#[test]
fn cut_archives_and_wrong_digests_are_refused() {
    let bytes = archive(|builder| {
        raw(builder, b"f", header(EntryType::Regular, 2000), &[7; 2000]);
    });
    assert!(matches!(
        read(&bytes[..1500]).result,
        Err(ReadLayerError::Read(_))
    ));
    let other = Digest::of(b"other");
    let wrong = read_with(
        &bytes,
        LayerCompression::None,
        &other,
        &mut Budget::default(),
    );
    assert!(matches!(wrong.result, Err(ReadLayerError::Digest { .. })));
    assert_eq!(kinds(&bytes).len(), 1);
}

#[test]
fn bombs_end_at_the_budget() {
    let bytes = archive(|builder| {
        raw(
            builder,
            b"f",
            header(EntryType::Regular, 1 << 20),
            &vec![0; 1 << 20],
        );
    });
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&bytes).unwrap();
    let packed = packer.finish().unwrap();
    let digest = Digest::of(&bytes);
    let budget = |unpacked_bytes, entries, metadata_bytes| {
        let mut budget = Budget {
            unpacked_bytes,
            entries,
            metadata_bytes,
            disk_bytes: 2 << 20,
        };
        read_with(&packed, LayerCompression::Gzip, &digest, &mut budget).result
    };
    assert!(matches!(
        budget(1 << 19, 9, 9),
        Err(ReadLayerError::TooLarge)
    ));
    assert!(matches!(
        budget(2 << 20, 0, 9),
        Err(ReadLayerError::TooManyEntries)
    ));
    assert!(matches!(
        budget(2 << 20, 9, 0),
        Err(ReadLayerError::TooMuchMetadata)
    ));
    assert_eq!(budget(2 << 20, 1, 999).unwrap().len(), 1);
}
