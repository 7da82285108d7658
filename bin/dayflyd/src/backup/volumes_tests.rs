//! A copy of a volume is one state of its disk, or is made again.

use std::os::unix::fs::FileExt;

use super::*;

struct World {
    place: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

impl World {
    fn new(record: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("node/volumes/default/data");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(RECORD), record).unwrap();
        fs::write(path.join(DISK), vec![1; 1 << 20]).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        Self { place, runtime }
    }

    fn fill(&self, to: &File) -> Result<(Vec<u8>, VolumeState)> {
        let directory = DataDirectory::open(self.place.path()).unwrap();
        let mut records = Records::read(&directory).unwrap();
        let volume = Volume {
            path: self.place.path().join("node/volumes/default/data"),
            node: None,
            runtime: self.runtime.handle(),
        };
        let disk = File::open(volume.path.join(DISK)).unwrap();
        volume.fill(&disk, to, &mut records)
    }

    fn copy(&self) -> File {
        let mut options = File::options();
        let options = options.create(true).truncate(true).read(true).write(true);
        options.open(self.place.path().join("copy")).unwrap()
    }

    fn disk(&self) -> PathBuf {
        self.place
            .path()
            .join("node/volumes/default/data")
            .join(DISK)
    }
}

#[test]
fn one_that_nobody_has_is_at_rest_and_one_in_use_is_as_after_a_power_cut() {
    let world = World::new(r#"{"size": 1, "writer": null}"#);
    let copy = world.copy();
    assert_eq!(world.fill(&copy).unwrap().1, VolumeState::AtRest);
    assert_eq!(
        fs::read(world.place.path().join("copy")).unwrap(),
        vec![1; 1 << 20]
    );
    let id = SandboxId::from_random(
        &dayfly_types::CellName::local(),
        [7; dayfly_types::ids::ID_RANDOM_BYTES],
    );
    let world = World::new(&format!(r#"{{"size": 1, "writer": "{id}"}}"#));
    assert_eq!(
        world.fill(&world.copy()).unwrap().1,
        VolumeState::CrashConsistent
    );
}

#[test]
fn one_whose_growth_was_cut_short_is_copied_all_the_same() {
    let world = World::new(r#"{"size": 1, "writer": null}"#);
    File::options()
        .write(true)
        .open(world.disk())
        .unwrap()
        .set_len(2 << 20)
        .unwrap();
    let copy = world.copy();
    assert_eq!(world.fill(&copy).unwrap().1, VolumeState::AtRest);
    assert_eq!(copy.metadata().unwrap().len(), 2 << 20);
}

#[test]
fn a_write_meanwhile_is_seen() {
    let world = World::new("{}");
    let disk = File::options()
        .read(true)
        .write(true)
        .open(world.disk())
        .unwrap();
    let before = Stamp::settled(&disk).unwrap();
    assert_eq!(Stamp::of(&disk).unwrap(), before);
    disk.write_all_at(b"x", 5).unwrap();
    assert_ne!(Stamp::of(&disk).unwrap(), before);
}

#[test]
fn one_with_a_record_of_another_program_is_kept_as_it_is() {
    let world = World::new("{ torn");
    let (text, state) = world.fill(&world.copy()).unwrap();
    assert_eq!(
        (text.as_slice(), state),
        (&b"{ torn"[..], VolumeState::CrashConsistent)
    );
}
