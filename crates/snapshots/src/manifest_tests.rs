//! The frozen form of the manifest, and what fits.

use std::path::Path;
use std::time::Duration;

use dayfly_types::{DiskMib, MemoryMib, Vcpus};

use super::*;
use crate::file_names;

pub(crate) fn draft() -> ManifestDraft {
    ManifestDraft {
        name: TemplateName::parse("base").unwrap(),
        project: Some(ProjectId::parse("default").unwrap()),
        parent: Some(ParentIdentity {
            name: TemplateName::parse("base").unwrap(),
            version: "00000001-0123abcd".to_owned(),
        }),
        recipe: RecipeIdentity {
            version: 1,
            hash: "aa".repeat(32),
        },
        variant: None,
        offer: Offer {
            description: "what it is for".to_owned(),
            run: RunMeaning::Python,
            contexts: vec![ContextLanguage::Python],
            start: Vec::new(),
            entry_point: Vec::new(),
            image: None,
        },
        created_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000),
        machine: MachineSpec {
            memory: MemoryMib::new(512).unwrap(),
            vcpus: Vcpus::new(1).unwrap(),
            disk: DiskMib::new(8192).unwrap(),
            spare_disks: 3,
        },
        engine: EngineIdentity {
            kind: EngineKind::Qemu,
            version: "10.0.2".to_owned(),
            accelerator: Accelerator::Tcg,
            cpu_model: "max".to_owned(),
            build: None,
        },
        kernel_version: "6.12.1-cloud-amd64".to_owned(),
        agent: AgentIdentity {
            protocol_generation: 1,
            hash: "bb".repeat(32),
        },
        sealed_layers: vec![
            file_names::LOWEST_LAYER.into(),
            file_names::BAKED_LAYER.into(),
        ],
        base_parts: Vec::new(),
    }
}

pub(crate) fn example() -> TemplateManifest {
    let digest = |byte: u8| {
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[byte], 0).unwrap();
        crate::digest::digest_file(&file).unwrap()
    };
    let mut names: Vec<&str> = file_names::REQUIRED.to_vec();
    names.extend([file_names::LOWEST_LAYER, file_names::BAKED_LAYER]);
    let files = names.iter().zip(1u8..).map(|(name, byte)| SealedFile {
        name: (*name).to_owned(),
        bytes: 1,
        digest: digest(byte),
    });
    draft().finish(files.collect())
}

fn fingerprint_of(manifest: &TemplateManifest) -> Fingerprint {
    Fingerprint {
        host: HostFingerprint {
            engine: manifest.engine.clone(),
            agent_hash: manifest.agent.hash.clone(),
        },
        recipe_hash: manifest.recipe.hash.clone(),
    }
}

/// Manifests of released versions must stay readable. When this fails, either undo the change or
/// raise the format; `DAYFLY_BLESS=1` rewrites the file after a change that only adds.
#[test]
fn manifest_has_not_drifted() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/manifest-2.json");
    let text = example().to_json().unwrap();
    if std::env::var_os("DAYFLY_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let frozen = std::fs::read(&path).unwrap();
    assert_eq!(
        String::from_utf8(frozen.clone()).unwrap(),
        String::from_utf8(text).unwrap()
    );
    assert_eq!(TemplateManifest::parse(&frozen).unwrap(), example());
}

/// A template whose base disk is in three files.
fn in_parts() -> TemplateManifest {
    let mut manifest = example();
    manifest.format = MANIFEST_FORMAT;
    manifest.base_parts = BasePartNames::of(3);
    let known: Vec<SealedFile> = manifest.files.clone();
    let names = manifest.base_parts.iter();
    let names = names.flat_map(|part| [part.content.clone(), part.map.clone()]);
    let more = names.filter(|name| known.iter().all(|file| file.name != *name));
    let more = more.map(|name| SealedFile {
        name,
        ..known[0].clone()
    });
    manifest.files.extend(more);
    manifest
}

#[test]
fn manifest_of_a_base_in_parts_has_not_drifted() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/manifest-3.json");
    let text = in_parts().to_json().unwrap();
    if std::env::var_os("DAYFLY_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let frozen = std::fs::read_to_string(&path).unwrap();
    assert_eq!(frozen, String::from_utf8(text).unwrap());
    assert_eq!(
        TemplateManifest::parse(frozen.as_bytes()).unwrap(),
        in_parts()
    );
}

/// An older program, which would take one part for all of the disk, refuses the newer format; a base
/// of one file is written as it always was, and fits.
#[test]
fn the_newer_format_is_for_bases_in_parts_alone() {
    assert_eq!(example().format, MANIFEST_FORMAT_WHOLE_BASE);
    let parted = ManifestDraft {
        base_parts: BasePartNames::of(2),
        ..draft()
    };
    assert_eq!(parted.finish(Vec::new()).format, MANIFEST_FORMAT);
    for manifest in [example(), in_parts()] {
        assert_eq!(manifest.fits(&fingerprint_of(&manifest)), Ok(()));
    }
}

#[test]
fn parts_have_the_names_that_every_program_gives_them_and_are_listed() {
    let refused = |manifest: &TemplateManifest| {
        TemplateManifest::parse(&manifest.to_json().unwrap()).unwrap_err()
    };
    for name in ["memory.img", "../base-0.img", "base-1.img", ""] {
        let mut manifest = in_parts();
        manifest.base_parts[0].content = name.to_owned();
        assert!(matches!(refused(&manifest), ManifestError::BaseParts));
        let mut manifest = in_parts();
        manifest.base_parts[0].map = name.to_owned();
        assert!(matches!(refused(&manifest), ManifestError::BaseParts));
    }
    for name in ["base-0.img", "base-1.map", "base.map"] {
        let mut manifest = in_parts();
        manifest.files.retain(|file| file.name != name);
        assert!(matches!(
            refused(&manifest),
            ManifestError::MissingFile { .. }
        ));
    }
}

/// It is read, so that it can be said what is wrong with it: it is baked anew.
#[test]
fn manifest_of_an_earlier_format_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/manifest-1.json");
    let old = TemplateManifest::parse(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(
        old.fits(&fingerprint_of(&old)),
        Err(Mismatch::Format { found: 1 })
    );
}

#[test]
fn unknown_keys_are_read_over() {
    let text = String::from_utf8(example().to_json().unwrap()).unwrap();
    let text = text.replacen('{', "{\n  \"later\": {\"more\": 1},", 1);
    assert_eq!(TemplateManifest::parse(text.as_bytes()).unwrap(), example());
}

#[test]
fn newer_format_is_refused_whatever_it_holds() {
    let error = TemplateManifest::parse(br#"{"format": 4, "name": 7}"#).unwrap_err();
    assert!(
        matches!(error, ManifestError::Newer { found: 4 }),
        "{error}"
    );
}

#[test]
fn names_that_leave_the_directory_are_refused() {
    for name in ["../x", "/etc/passwd", "a/b", ".", "..", ""] {
        let mut manifest = example();
        manifest.files[0].name = name.to_owned();
        let text = manifest.to_json().unwrap();
        let error = TemplateManifest::parse(&text).unwrap_err();
        assert!(
            matches!(error, ManifestError::BadFileName { .. }),
            "{name:?}: {error}"
        );
    }
}

#[test]
fn unlisted_files_are_refused() {
    let mut manifest = example();
    manifest
        .files
        .retain(|entry| entry.name != file_names::BAKED_LAYER);
    let error = TemplateManifest::parse(&manifest.to_json().unwrap()).unwrap_err();
    assert!(
        error.to_string().contains(file_names::BAKED_LAYER),
        "{error}"
    );
}

#[test]
fn mismatch_says_which_field_differs() {
    let manifest = example();
    assert_eq!(manifest.fits(&fingerprint_of(&manifest)), Ok(()));
    let with = |change: fn(&mut Fingerprint)| {
        let mut wanted = fingerprint_of(&manifest);
        change(&mut wanted);
        manifest.fits(&wanted).unwrap_err()
    };
    assert!(matches!(
        with(|wanted| wanted.host.engine.kind = EngineKind::Firecracker),
        Mismatch::Engine { .. }
    ));
    assert!(matches!(
        with(|wanted| wanted.host.engine.version = "11".to_owned()),
        Mismatch::EngineVersion { .. }
    ));
    assert!(matches!(
        with(|wanted| wanted.host.engine.accelerator = Accelerator::Kvm),
        Mismatch::Accelerator { .. }
    ));
    assert!(matches!(
        with(|wanted| wanted.host.engine.cpu_model = "host".to_owned()),
        Mismatch::CpuModel { .. }
    ));
    assert!(matches!(
        with(|wanted| wanted.host.agent_hash.clear()),
        Mismatch::Agent { .. }
    ));
    assert!(matches!(
        with(|wanted| wanted.recipe_hash.clear()),
        Mismatch::Recipe { .. }
    ));
    let mut old = example();
    old.format = 0;
    assert_eq!(
        old.fits(&fingerprint_of(&old)),
        Err(Mismatch::Format { found: 0 })
    );
}
