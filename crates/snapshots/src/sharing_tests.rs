use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use dayfly_types::TemplateName;

use crate::base_disk::{BaseFiles, BasePartNames, lower_part};
use crate::image_cache::{CacheEntry, ImageCache, ImageKey};
use crate::manifest::ManifestDraft;
use crate::staging::StagingDirectory;
use crate::store::TemplateStore;
use crate::store::tests::shared;
use crate::template::{BakedTemplate, file_names};
use crate::verify::Verifier;

const MIB: usize = 1 << 20;
/// The images that share a base; as many as the requirement says.
const IMAGES: u8 = 20;
const OWN_BYTES: usize = 2 * MIB;

/// Bytes that no file system can store in less, and others for each number.
fn noise(number: u8, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[number]);
    hasher.finalize_xof().fill(&mut noise);
    noise
}

struct Host {
    directory: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        // Not in memory: what is measured is blocks of a disk.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        Self { directory }
    }

    fn cache(&self) -> ImageCache {
        ImageCache::new(self.directory.path().join("images"), None)
    }

    fn store(&self) -> TemplateStore {
        TemplateStore::new(self.directory.path().join("templates"))
    }

    /// An image whose first layers are those of every other.
    fn staged(&self, number: u8, base: &[u8]) -> StagingDirectory {
        let staging = self.cache().stage().unwrap();
        let at = |name: &str| staging.path().join(name);
        std::fs::write(at(&lower_part(0)), base).unwrap();
        let own = File::create_new(at(file_names::BASE_IMAGE)).unwrap();
        let place = base.len() as u64;
        own.write_all_at(&noise(number, OWN_BYTES), place).unwrap();
        staging
    }

    fn add(&self, number: u8, base: &[u8]) -> CacheEntry {
        let names = [file_names::BASE_IMAGE.to_owned(), lower_part(0)].to_vec();
        let staging = self.staged(number, base);
        self.cache()
            .commit(&key(number), staging, "", names)
            .unwrap()
    }

    fn bake(&self, number: u8, entry: &CacheEntry) -> BakedTemplate {
        let staging = self.store().begin(&name(number)).unwrap();
        staging
            .link_base(&BaseFiles::among(&entry.files).unwrap())
            .unwrap();
        for file in file_names::REQUIRED
            .into_iter()
            .chain([file_names::LOWEST_LAYER, file_names::BAKED_LAYER])
        {
            if file != file_names::BASE_IMAGE {
                std::fs::write(staging.path(file), file).unwrap();
            }
        }
        let draft = ManifestDraft {
            name: name(number),
            base_parts: BasePartNames::of(2),
            ..shared()
        };
        self.store().publish(staging, draft).unwrap()
    }

    fn delete(&self, number: u8) {
        self.store()
            .remove_old_versions(&name(number), &[].into())
            .unwrap();
    }

    /// Bytes of the disk that files take, each once.
    fn used(&self) -> u64 {
        let mut files = HashMap::new();
        let mut left = vec![self.directory.path().to_owned()];
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                let about = entry.metadata().unwrap();
                if about.is_dir() {
                    left.push(entry.path());
                } else {
                    files.insert(about.ino(), about.blocks() * 512);
                }
            }
        }
        files.into_values().sum()
    }
}

fn key(number: u8) -> ImageKey {
    ImageKey::new("container", &number)
}

fn name(number: u8) -> TemplateName {
    TemplateName::parse(&format!("image-{number}")).unwrap()
}

fn links(path: &Path) -> u64 {
    path.metadata().unwrap().nlink()
}

/// Twenty images with a base take at most 1.2 times the base and what each has of its own, and
/// twenty builds and deletes give all of it back.
fn twenty_images(base_bytes: usize) {
    let host = Host::new();
    let base = noise(255, base_bytes);
    let before = host.used();
    for number in 0..IMAGES {
        let entry = host.add(number, &base);
        host.bake(number, &entry);
    }
    let used = host.used();
    let differs = (base_bytes + usize::from(IMAGES) * OWN_BYTES) as u64;
    println!("{used} bytes of {differs} that differ");
    assert!(used >= differs, "{used} of {differs}: nothing was measured");
    assert!(used * 10 <= differs * 12, "{used} of {differs}");
    for number in 0..IMAGES {
        host.delete(number);
    }
    host.cache().remove_others("container", &[]);
    assert_eq!(host.used(), before);
    // Built and deleted one after the other, nothing is left either.
    for number in 0..IMAGES {
        let entry = host.add(number, &base);
        host.bake(number, &entry);
        host.delete(number);
        host.cache().remove_others("container", &[]);
        assert_eq!(host.used(), before, "image {number}");
    }
}

#[test]
fn twenty_images_store_their_common_base_once_and_give_it_back() {
    twenty_images(30 * MIB);
}

#[test]
#[ignore = "soak: writes 12 GiB"]
fn twenty_images_store_a_base_of_300_mib_once_and_give_it_back() {
    twenty_images(300 * MIB);
}

#[test]
fn a_part_in_use_stays_when_others_that_have_it_go() {
    let host = Host::new();
    let base = noise(255, 2 * MIB);
    let entries = [1, 2].map(|number| host.add(number, &base));
    let part = |entry: &CacheEntry| BaseFiles::among(&entry.files).unwrap().lower[0].clone();
    assert_eq!(links(&part(&entries[0])), 2);
    let template = host.bake(2, &entries[1]);
    let path = template.path(&lower_part(0));
    assert_eq!(links(&path), 3);
    // The first that had it goes, with all entries of the cache.
    host.cache().remove_others("container", &[]);
    assert!(!part(&entries[0]).exists() && !part(&entries[1]).exists());
    assert_eq!(links(&path), 1);
    Verifier::new().verify(&template).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), base);
    let opened = host
        .store()
        .open_version(&name(2), template.version())
        .unwrap();
    assert_eq!(opened.restore_spec().disks.base_parts.len(), 2);
}

#[test]
fn a_part_is_digested_once_for_all_templates_that_have_it() {
    let host = Host::new();
    let base = noise(255, 2 * MIB);
    let template = [1, 2].map(|number| host.bake(number, &host.add(number, &base)));
    let verifier = Verifier::new();
    verifier.verify(&template[0]).unwrap();
    let part = template[1].path(&lower_part(0));
    let modified = part.metadata().unwrap().modified().unwrap();
    // Another content in the same file, at the same time: whoever read it again would see it.
    std::fs::set_permissions(&part, PermissionsExt::from_mode(0o644)).unwrap();
    let file = File::options().write(true).open(&part).unwrap();
    file.write_all_at(b"other", 0).unwrap();
    file.set_modified(modified).unwrap();
    verifier.verify(&template[1]).unwrap();
    assert!(Verifier::new().verify(&template[1]).is_err());
}

#[test]
fn a_damaged_part_does_not_spread() {
    let host = Host::new();
    let base = noise(255, 2 * MIB);
    let first = BaseFiles::among(&host.add(1, &base).files).unwrap();
    std::fs::set_permissions(&first.lower[0], PermissionsExt::from_mode(0o644)).unwrap();
    let mut damaged = base.clone();
    damaged[4711] ^= 1;
    std::fs::write(&first.lower[0], &damaged).unwrap();
    std::fs::set_permissions(&first.lower[0], PermissionsExt::from_mode(0o444)).unwrap();
    let second = host.add(2, &base);
    let second = BaseFiles::among(&second.files).unwrap();
    assert_eq!(std::fs::read(&second.lower[0]).unwrap(), base);
    assert!(host.cache().open(&key(2)).is_some());
    // A third takes that of the second, whichever is looked at first.
    let third = BaseFiles::among(&host.add(3, &base).files).unwrap();
    assert_eq!(links(&third.lower[0]), 2);
    assert_eq!(links(&first.lower[0]), 1);
}

#[test]
fn what_a_list_says_of_a_file_is_not_believed() {
    let host = Host::new();
    let victim = noise(255, 2 * MIB);
    let other = noise(254, 2 * MIB);
    let forged = BaseFiles::among(&host.add(1, &other).files).unwrap();
    let honest = host.cache().contents(&key(1)).unwrap();
    // The entry says that it has the digest of somebody else's part.
    let real = crate::digest::digest_path(&{
        let path = host.directory.path().join("victim");
        std::fs::write(&path, &victim).unwrap();
        path
    });
    let text = serde_json::to_string(&honest).unwrap();
    let text = text.replace(honest.files[1].digest.as_str(), real.unwrap().as_str());
    let list = forged.last.with_file_name("contents.json");
    std::fs::remove_file(&list).unwrap();
    std::fs::write(&list, text).unwrap();
    let entry = host.add(2, &victim);
    let found = BaseFiles::among(&entry.files).unwrap();
    assert_eq!(std::fs::read(&found.lower[0]).unwrap(), victim);
    assert_eq!(links(&found.lower[0]), 1);
}

/// Work that ends between two steps, as with a crash there.
#[test]
fn a_crash_between_any_two_steps_leaves_nothing_that_the_next_start_does_not_remove() {
    let host = Host::new();
    let base = noise(255, 2 * MIB);
    let entry = host.add(1, &base);
    let before = host.used();
    let part = BaseFiles::among(&entry.files).unwrap().lower[0].clone();
    let staged: Vec<Box<dyn Fn(PathBuf)>> = vec![
        Box::new(|_| {}),
        // A name that was looked at and not given yet.
        Box::new(|at| std::fs::hard_link(&part, at.join(super::ASIDE)).unwrap()),
        // One that was given.
        Box::new(|at| {
            std::fs::hard_link(&part, at.join(super::ASIDE)).unwrap();
            std::fs::rename(at.join(super::ASIDE), at.join(lower_part(0))).unwrap();
        }),
        // A list of contents without the entry's name.
        Box::new(|at| std::fs::write(at.join("contents.json"), "{").unwrap()),
    ];
    for (step, stop) in staged.iter().enumerate() {
        // What holds the directory ends without tidying up.
        let staging = host.staged(2, &base);
        stop(staging.path().to_owned());
        staging.leave_behind();
        assert_eq!(host.cache().sweep().unwrap(), 1, "step {step}");
        assert_eq!(host.used(), before, "step {step}");
    }
    // Between entry and template, and within the removal of either.
    let second = host.add(2, &base);
    let staging = host.store().begin(&name(2)).unwrap();
    staging
        .link_base(&BaseFiles::among(&second.files).unwrap())
        .unwrap();
    staging.leave_behind();
    assert_eq!(host.store().sweep().unwrap(), 1);
    let template = host.bake(2, &second);
    host.cache().remove_others("container", &[key(1)]);
    let gone = host.directory.path().join("templates/.staging/gone");
    std::fs::rename(template.directory(), &gone).unwrap();
    std::fs::remove_file(gone.join(file_names::MANIFEST)).unwrap();
    assert_eq!(host.store().sweep().unwrap(), 1);
    assert_eq!(host.used(), before);
    assert_eq!(links(&part), 1);
    assert!(host.cache().open(&key(1)).is_some());
}

#[test]
fn a_shared_cache_stores_equal_parts_once_on_both_sides() {
    let host = Host::new();
    let at = |name: &str| host.directory.path().join(name);
    let base = noise(255, 2 * MIB);
    let first = ImageCache::new(at("images"), Some(at("shared")));
    let names = [file_names::BASE_IMAGE.to_owned(), lower_part(0)];
    for number in [1, 2] {
        let staging = host.staged(number, &base);
        first
            .commit(&key(number), staging, "", names.to_vec())
            .unwrap();
    }
    let second = ImageCache::new(at("second"), Some(at("shared")));
    for number in [1, 2] {
        let entry = second.open(&key(number)).unwrap();
        let own = BaseFiles::among(&entry.files).unwrap().lower.remove(0);
        assert_eq!(links(&own), u64::from(number));
        let theirs = at("shared").join(key(number).as_str()).join(lower_part(0));
        assert_eq!(links(&theirs), 2);
    }
}
