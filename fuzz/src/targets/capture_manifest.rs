//! Manifests of captures.
//!
//! What is promised for any text: no panic; what is accepted names plain files, once each, and maps
//! memory that is in its file; and what was read, written again, is read as the same.

use dayfly_snapshots::CaptureManifest;
use dayfly_snapshots::capture::document::{decode, encode};
use dayfly_types::SnapshotId;

use super::Inputs;

const FROZEN: &str = include_str!("../../../crates/snapshots/schema/capture-1.json");
/// The capture that the frozen manifest is of.
const ID: &str = "snap-local-b";

pub(super) fn check(input: &[u8]) {
    let Ok(id) = SnapshotId::parse(ID) else {
        return;
    };
    if let Ok(manifest) = decode(input, &id) {
        check_manifest(&manifest, &id);
    }
    // The checksum stops nearly every mutation at the door; with a new one it gets inside.
    if let Ok(manifest) = decode(&sealed(input), &id) {
        check_manifest(&manifest, &id);
    }
}

fn check_manifest(manifest: &CaptureManifest, id: &SnapshotId) {
    assert_eq!(manifest.id, *id);
    for entry in &manifest.files {
        let name = &entry.name;
        assert!(
            !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != "..",
            "not a plain name: {name:?}"
        );
        let same = manifest.files.iter().filter(|other| other.name == *name);
        assert_eq!(same.count(), 1, "{name:?} is there twice");
    }
    let mut behind_last = 0;
    let bytes = manifest
        .entry(&manifest.memory_file)
        .map_or(0, |entry| entry.bytes);
    for extent in &manifest.extents {
        assert!(
            extent.first >= behind_last && extent.count > 0,
            "not in order"
        );
        behind_last = extent.first + extent.count;
        assert!(behind_last <= bytes / 4096, "behind the end of the file");
    }
    let text = encode(manifest);
    let again = text.as_ref().map(|text| decode(text, id));
    assert!(
        matches!(&again, Ok(Ok(again)) if again == manifest),
        "written again it is {again:?}"
    );
}

/// The text with the checksum that it would need, in place of one that it has.
fn sealed(input: &[u8]) -> Vec<u8> {
    const MARK: &[u8] = b",\"checksum\":\"";
    let end = input.windows(MARK.len()).rposition(|part| part == MARK);
    let mut body = input[..end.unwrap_or(input.len())].to_vec();
    if end.is_none() && body.last() == Some(&b'}') {
        body.pop();
    }
    let mut whole = body.clone();
    whole.push(b'}');
    body.extend(MARK);
    body.extend(blake3::hash(&whole).to_hex().as_bytes());
    body.extend(b"\"}\n");
    body
}

pub(super) fn seeds() -> Inputs {
    let twice = FROZEN.replace("disk.layer", "memory.layer");
    let outside = FROZEN.replace("device.state", "../device.state");
    let newer = FROZEN.replace("\"format\":1", "\"format\":2");
    [
        ("seed-frozen", FROZEN.to_owned()),
        ("seed-twice", twice),
        ("seed-outside", outside),
        ("seed-newer", newer),
    ]
    .map(|(name, text)| (name.to_owned(), text.into_bytes()))
    .to_vec()
}
