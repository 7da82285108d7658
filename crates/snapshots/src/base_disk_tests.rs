use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;

use super::*;
use crate::qcow2::merge_tests::tools_are_missing;
use crate::template::file_names;

const UNIT: u64 = IMAGE_PART_UNIT_BYTES;

fn index(place: u64) -> usize {
    usize::try_from(place).unwrap()
}

/// A disk as the program leaves it: parts up to these units, and the last with some blocks more.
fn leave(directory: &Path, ends: &[u64], blocks: u64) -> Vec<u8> {
    let length = ends.last().copied().unwrap_or(1) * UNIT + blocks * 4096;
    let sectors = (1..=251).cycle().flat_map(|byte| [byte; 512]);
    let whole: Vec<u8> = sectors.take(index(length)).collect();
    let mut below = UNIT;
    for (number, end) in ends
        .iter()
        .map(|end| end * UNIT)
        .chain([length])
        .enumerate()
    {
        let file = File::create_new(directory.join(made::disk_part(number))).unwrap();
        file.set_len(end).unwrap();
        let own = &whole[index(below)..index(end)];
        file.write_all_at(own, below).unwrap();
        if number == ends.len() {
            file.write_all_at(&whole[..index(UNIT)], 0).unwrap();
        }
        below = end;
    }
    whole
}

/// What an engine sees that is told of the parts as the launch tells it.
fn seen(parts: &[BasePart], to: &Path) -> Vec<u8> {
    let mut below = serde_json::Value::Null;
    for part in parts {
        let file = |path: &Path| serde_json::json!({"driver": "file", "filename": path});
        below = serde_json::json!({
            "driver": "qcow2", "file": file(&part.map), "data-file": file(&part.content),
            "backing": below, "read-only": true,
        });
    }
    let output = Command::new("/usr/bin/qemu-img")
        .args(["convert", "-O", "raw", &format!("json:{below}")])
        .arg(to)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    std::fs::read(to).unwrap()
}

#[test]
fn an_engine_sees_one_disk_in_any_number_of_parts() {
    if tools_are_missing() {
        return;
    }
    for ends in [&[2][..], &[3, 4], &[2, 20, 21, 40, 41, 42, 60]] {
        let root = tempfile::tempdir().unwrap();
        let [work, directory] = ["work", "taken"].map(|name| root.path().join(name));
        std::fs::create_dir(&work).unwrap();
        std::fs::create_dir(&directory).unwrap();
        let whole = leave(&work, ends, 5);
        let names = take(&work, &directory, 1 << 30).unwrap();
        assert_eq!(names.len(), ends.len() + 1);
        assert_eq!(names[0], BASE_IMAGE);
        assert!(are_names_of_disk(
            &names.iter().map(String::as_str).collect::<Vec<_>>()
        ));
        let parts = write_maps(&directory, names.len()).unwrap();
        assert!(seen(&parts, &root.path().join("raw")) == whole, "{ends:?}");
    }
}

#[test]
fn a_map_beyond_one_table_is_of_the_right_places() {
    if tools_are_missing() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let ends = [(600 << 20), (1100 << 20), (1100 << 20) + 4096];
    let names = ["base-0.img", "base-1.img", file_names::BASE_IMAGE];
    for (name, end) in names.iter().zip(ends) {
        let file = File::create_new(at(name)).unwrap();
        file.set_len(end).unwrap();
        file.write_all_at(name.as_bytes(), end - 512).unwrap();
        // Where another part's place is, nothing of this is seen.
        file.write_all_at(b"hidden", 4096).unwrap();
    }
    let parts = write_maps(root.path(), 3).unwrap();
    for (index, part) in parts.iter().enumerate() {
        let taken = part.map.metadata().unwrap().blocks() * 512;
        assert!(taken < 200 << 10, "map {index} takes {taken}");
        assert_eq!(part.map.metadata().unwrap().mode() & 0o777, 0o444);
    }
    let whole = seen(&parts, &at("raw"));
    assert_eq!(whole.len() as u64, ends[2]);
    for (name, end) in names.iter().zip(ends) {
        let place = index(end - 512);
        assert_eq!(&whole[place..place + name.len()], name.as_bytes());
    }
    assert_eq!(&whole[4096..4102], b"hidden");
    let stored = whole
        .chunks(4096)
        .filter(|block| block.iter().any(|byte| *byte != 0));
    assert_eq!(stored.count(), 4);
}

#[test]
fn one_file_is_taken_as_it_is_and_needs_no_map() {
    let root = tempfile::tempdir().unwrap();
    let [work, directory] = ["work", "taken"].map(|name| root.path().join(name));
    std::fs::create_dir(&work).unwrap();
    std::fs::create_dir(&directory).unwrap();
    let whole = leave(&work, &[], 3);
    assert_eq!(take(&work, &directory, 1 << 20).unwrap(), [BASE_IMAGE]);
    assert_eq!(std::fs::read(directory.join(BASE_IMAGE)).unwrap(), whole);
    assert_eq!(write_maps(&directory, 1).unwrap(), []);
    assert!(!directory.join("base.map").exists());
}

#[test]
fn parts_that_no_map_can_join_are_refused() {
    let cases: [&[u64]; 5] = [
        &[2 * UNIT, 2 * UNIT],
        &[3 * UNIT, 2 * UNIT],
        &[2 * UNIT + 4096, 4 * UNIT],
        &[0, 2 * UNIT],
        &[2 * UNIT, 32 * UNIT],
    ];
    for lengths in cases {
        let root = tempfile::tempdir().unwrap();
        let [work, directory] = ["work", "taken"].map(|name| root.path().join(name));
        std::fs::create_dir(&work).unwrap();
        std::fs::create_dir(&directory).unwrap();
        for (index, length) in lengths.iter().enumerate() {
            let file = File::create_new(work.join(made::disk_part(index))).unwrap();
            file.set_len(*length).unwrap();
        }
        assert!(take(&work, &directory, 20 * UNIT).is_err(), "{lengths:?}");
    }
    // Not even when the cache has them.
    let root = tempfile::tempdir().unwrap();
    for name in ["base-0.img", BASE_IMAGE] {
        File::create_new(root.path().join(name))
            .unwrap()
            .set_len(UNIT)
            .unwrap();
    }
    assert!(write_maps(root.path(), 2).is_err());
}

#[test]
fn links_in_place_of_parts_are_refused() {
    for is_hard in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let [work, directory] = ["work", "taken"].map(|name| root.path().join(name));
        std::fs::create_dir(&work).unwrap();
        std::fs::create_dir(&directory).unwrap();
        leave(&work, &[2], 1);
        let part = work.join(made::disk_part(1));
        let target = root.path().join("target");
        std::fs::rename(&part, &target).unwrap();
        if is_hard {
            std::fs::hard_link(&target, &part).unwrap();
        } else {
            std::os::unix::fs::symlink(&target, &part).unwrap();
        }
        assert!(take(&work, &directory, 1 << 30).is_err());
        // Under one name and no link it is taken.
        if is_hard {
            continue;
        }
        std::fs::remove_file(&part).unwrap();
        std::fs::rename(&target, &part).unwrap();
        let first = directory.join(lower_part(0));
        std::fs::rename(first, work.join(made::disk_part(0))).unwrap();
        take(&work, &directory, 1 << 30).unwrap();
    }
}

#[test]
fn names_of_a_disk_are_in_one_order() {
    for names in [&["base.img"][..], &["base.img", "base-0.img", "base-1.img"]] {
        assert!(are_names_of_disk(names));
    }
    for names in [
        &[][..],
        &["base-0.img"],
        &["base-0.img", "base.img"],
        &["base.img", "base-1.img"],
        &["base.img", "base-0.map"],
    ] {
        assert!(!are_names_of_disk(names), "{names:?}");
    }
    let many: Vec<String> = (0..IMAGE_PARTS_MAX).map(lower_part).collect();
    let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
    many.insert(0, BASE_IMAGE);
    assert!(!are_names_of_disk(&many));
    many.pop();
    assert!(are_names_of_disk(&many));
}
