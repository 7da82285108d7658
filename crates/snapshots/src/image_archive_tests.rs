use super::*;
use crate::catalog::RecipeCatalog;
use crate::recipe::ImageRecipe;
use crate::template::file_names;

fn recipe() -> ResolvedRecipe {
    let catalog = RecipeCatalog::load(None).unwrap();
    let name = TemplateName::parse("base").unwrap();
    catalog.get(&name).unwrap().clone()
}

/// A host with an image, and one without.
struct Hosts {
    directory: tempfile::TempDir,
    recipe: ResolvedRecipe,
}

impl Hosts {
    fn new() -> Self {
        let hosts = Self {
            directory: tempfile::tempdir().unwrap(),
            recipe: recipe(),
        };
        let [kernel, root] = keys(&hosts.recipe);
        let cache = hosts.cache("first");
        let staging = cache.stage().unwrap();
        for name in [KERNEL_FILE, "a.ko"] {
            std::fs::write(staging.path().join(name), name).unwrap();
        }
        let names = vec![KERNEL_FILE.to_owned(), "a.ko".to_owned()];
        cache.commit(&kernel, staging, "6.12", names).unwrap();
        let staging = cache.stage().unwrap();
        // With a hole of two blocks in it.
        let mut disk = vec![7; BLOCK_BYTES];
        disk.extend(vec![0; 2 * BLOCK_BYTES]);
        disk.extend(b"end");
        let file = file_names::BASE_IMAGE;
        std::fs::write(staging.path().join(file), disk).unwrap();
        let names = vec![file.to_owned()];
        cache.commit(&root, staging, "trixie", names).unwrap();
        hosts
    }

    fn cache(&self, name: &str) -> ImageCache {
        ImageCache::new(self.directory.path().join(name), None)
    }

    fn exported(&self) -> (Vec<u8>, ArchivedImage) {
        let mut archive = Vec::new();
        let report = export(&self.cache("first"), &self.recipe, &mut archive).unwrap();
        (archive, report)
    }

    fn import(&self, archive: &[u8], digest: Option<&str>) -> Result<ArchivedImage, ImportError> {
        let cache = self.cache("second");
        import(&cache, |_| Some(&self.recipe), archive, digest)
    }

    /// Imports what must be refused, and looks that nothing of it is there.
    fn refused(&self, archive: &[u8]) -> ImportError {
        let error = self.import(archive, None).unwrap_err();
        self.is_empty();
        error
    }

    fn is_empty(&self) {
        let cache = self.cache("second");
        assert!(
            keys(&self.recipe)
                .iter()
                .all(|key| cache.open(key).is_none())
        );
        let staging = cache.directory().join(".staging");
        let left = std::fs::read_dir(staging).map_or(0, Iterator::count);
        assert_eq!(left, 0, "something was left aside");
    }
}

#[test]
fn an_image_arrives_as_it_was() {
    let hosts = Hosts::new();
    let (archive, exported) = hosts.exported();
    assert_eq!(exported.bytes, archive.len() as u64);
    let imported = hosts.import(&archive, Some(&exported.digest)).unwrap();
    assert_eq!(imported, exported);
    let (first, second) = (hosts.cache("first"), hosts.cache("second"));
    for key in keys(&hosts.recipe) {
        let (sent, arrived) = (first.open(&key).unwrap(), second.open(&key).unwrap());
        assert_eq!(arrived.label, sent.label);
        assert_eq!(
            first.contents(&key).unwrap(),
            second.contents(&key).unwrap()
        );
        for (sent, arrived) in sent.files.iter().zip(&arrived.files) {
            assert_eq!(
                std::fs::read(sent).unwrap(),
                std::fs::read(arrived).unwrap()
            );
        }
    }
    // A second time, and over what was damaged since.
    hosts.import(&archive, None).unwrap();
    let [_, root] = keys(&hosts.recipe);
    let disk = second.open(&root).unwrap().files.remove(0);
    std::fs::remove_file(&disk).unwrap();
    hosts.import(&archive, None).unwrap();
    assert!(disk.exists());
}

/// Maps, which an engine understands, are made where the image is baked.
#[test]
fn parts_of_a_disk_arrive_and_nothing_else_beside_them() {
    let hosts = Hosts::new();
    let (cache, [_, root]) = (hosts.cache("first"), keys(&hosts.recipe));
    let archive_with = |names: &[&str]| {
        cache.remove_others("root", &[]);
        let staging = cache.stage().unwrap();
        for name in names {
            std::fs::write(staging.path().join(name), name).unwrap();
        }
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        cache.commit(&root, staging, "trixie", names).unwrap();
        hosts.exported().0
    };
    for names in [
        &["base.img", "base-0.img", "base-0.map"][..],
        &["base.img", "base.map"],
        &["base-0.img", "base.img"],
        &["base.img", "image.json", "base-0.img"],
    ] {
        let refused = hosts.refused(&archive_with(names));
        assert!(matches!(refused, ImportError::Contents { .. }), "{names:?}");
    }
    let names = ["base.img", "base-0.img", "base-1.img", "image.json"];
    hosts.import(&archive_with(&names), None).unwrap();
    let arrived = hosts.cache("second").open(&root).unwrap().files;
    assert_eq!(arrived.len(), names.len());
    for (path, name) in arrived.iter().zip(names) {
        assert_eq!(std::fs::read_to_string(path).unwrap(), name);
    }
}

#[test]
fn a_host_without_the_image_exports_nothing() {
    let hosts = Hosts::new();
    let mut archive = Vec::new();
    let error = export(&hosts.cache("second"), &hosts.recipe, &mut archive).unwrap_err();
    assert!(matches!(error, ExportError::NotBuilt { .. }));
    assert!(archive.is_empty());
}

#[test]
fn every_flipped_byte_and_every_cut_is_refused() {
    let hosts = Hosts::new();
    let (archive, exported) = hosts.exported();
    // Every byte of the head, and some of each file.
    let head = archive.iter().position(|byte| *byte == b'}').unwrap() + 2;
    let head = head.max(600).min(archive.len());
    let places = (0..head).chain((head..archive.len()).step_by(9973));
    for place in places {
        let mut damaged = archive.clone();
        damaged[place] ^= 1;
        // A word for people may change without anything being wrong but the digest of the whole.
        if hosts.import(&damaged, Some(&exported.digest)).is_ok() {
            panic!("byte {place} may be any");
        }
        hosts.is_empty();
    }
    for length in (0..archive.len()).step_by(20011).chain([archive.len() - 1]) {
        hosts.refused(&archive[..length]);
    }
    let mut longer = archive.clone();
    longer.push(0);
    assert!(matches!(hosts.refused(&longer), ImportError::Longer));
}

/// The archive with another head.
fn with_head(archive: &[u8], change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
    let rest = &archive[FIRST_LINE.len()..];
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
    let mut head = serde_json::from_slice(&rest[..end]).unwrap();
    change(&mut head);
    let mut changed = FIRST_LINE.to_vec();
    changed.extend(serde_json::to_vec(&head).unwrap());
    changed.extend(&rest[end..]);
    changed
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let hosts = Hosts::new();
    let (archive, _) = hosts.exported();
    for name in [
        "../../../outside",
        "/etc/passwd",
        "",
        ".hidden",
        "contents.json",
        "a/b",
    ] {
        let hostile = with_head(&archive, |head| {
            head["entries"][0]["files"][1]["name"] = name.into();
        });
        assert!(matches!(hosts.refused(&hostile), ImportError::Entry { .. }));
    }
    for key in ["../outside", "kernel-0", ""] {
        let hostile = with_head(&archive, |head| head["entries"][0]["key"] = key.into());
        assert!(matches!(hosts.refused(&hostile), ImportError::Other { .. }));
    }
    let twice = with_head(&archive, |head| {
        head["entries"][0]["files"][1]["name"] = KERNEL_FILE.into();
    });
    assert!(matches!(hosts.refused(&twice), ImportError::Entry { .. }));
    assert!(!hosts.directory.path().join("outside").exists());
}

#[test]
fn archives_of_something_else_are_refused() {
    let hosts = Hosts::new();
    let (archive, _) = hosts.exported();
    for text in ["", "dayfly-image 2\n{}", "PK", "dayfly-image 1\n"] {
        hosts.refused(text.as_bytes());
    }
    let swapped = with_head(&archive, |head| {
        let files = head["entries"][0]["files"].as_array_mut().unwrap();
        files.reverse();
    });
    assert!(matches!(
        hosts.refused(&swapped),
        ImportError::Contents { .. }
    ));
    let unknown = with_head(&archive, |head| head["more"] = 1.into());
    assert!(matches!(hosts.refused(&unknown), ImportError::Head(_)));
    let cache = hosts.cache("second");
    let error = import(&cache, |_| None, archive.as_slice(), None).unwrap_err();
    assert!(matches!(error, ImportError::NoRecipe { .. }));
    // Of a recipe that was changed since.
    let mut other = hosts.recipe.clone();
    let ImageRecipe::Packages(packages) = &mut other.image else {
        panic!("{:?}", other.image);
    };
    packages.packages.clear();
    let error = import(&cache, |_| Some(&other), archive.as_slice(), None).unwrap_err();
    assert!(matches!(error, ImportError::Other { .. }));
    hosts.is_empty();
}

#[test]
fn an_archive_that_says_it_is_huge_is_refused_before_a_byte_is_written() {
    let hosts = Hosts::new();
    let (archive, _) = hosts.exported();
    for bytes in [u64::MAX, 1 << 60] {
        let huge = with_head(&archive, |head| {
            head["entries"][1]["files"][0]["bytes"] = bytes.into();
        });
        assert!(matches!(hosts.refused(&huge), ImportError::NoRoom { .. }));
    }
    let endless = [FIRST_LINE, &vec![b' '; 2 << 20]].concat();
    assert!(matches!(hosts.refused(&endless), ImportError::HeadTooLong));
}
