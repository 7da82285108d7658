//! Variants beside the bakes of their template.

use std::path::Path;

use dayfly_types::{MemoryMib, Vcpus};

use super::*;
use crate::catalog::RecipeCatalog;
use crate::manifest::ManifestDraft;
use crate::store::tests::{publish_draft, published, shared, wanted};

fn variant(memory: u64, of: &str) -> ManifestDraft {
    let mut draft = shared();
    draft.machine.memory = MemoryMib::new(memory).unwrap();
    draft.recipe.hash = format!("{memory:064}");
    draft.variant = Some(VariantIdentity {
        of: of.to_owned(),
        ordered_by: Some(ProjectId::parse("default").unwrap()),
        bake_ms: 1234,
    });
    draft
}

/// Readers of before take it for any version, which only those look for who know its number.
#[test]
fn manifest_of_a_variant_has_not_drifted() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/manifest-2-variant.json");
    let text = variant(1024, "cc").finish(crate::manifest::tests::example().files);
    let text = text.to_json().unwrap();
    if std::env::var_os("DAYFLY_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let frozen = std::fs::read_to_string(&path).unwrap();
    assert_eq!(frozen, String::from_utf8(text).unwrap());
}

#[test]
fn variants_are_found_by_recipe_and_host_and_never_in_the_place_of_their_template() {
    let (root, own) = published();
    let store = TemplateStore::new(root.path().join("templates"));
    let name = own.manifest().name.clone();
    let older = publish_draft(&store, variant(1024, "now"));
    let newer = publish_draft(&store, variant(1024, "now"));
    let other = publish_draft(&store, variant(2048, "now"));
    let of_before = publish_draft(&store, variant(4096, "before"));
    let current = store.open_current(&name, &wanted()).unwrap().unwrap();
    assert_eq!(current.version(), own.version());
    let usable = store.open_usable(&name, &wanted().host).unwrap().unwrap();
    assert_eq!(usable.version(), own.version());
    let recipes = HashSet::from(["now".to_owned()]);
    let found = store.open_variants(&name, &wanted().host, &recipes);
    let found: Vec<_> = found
        .unwrap()
        .iter()
        .map(|one| one.version().clone())
        .collect();
    assert_eq!(found, [other.version().clone(), newer.version().clone()]);
    let mut host = wanted().host;
    host.agent_hash.clear();
    let elsewhere = store.open_variants(&name, &host, &recipes).unwrap();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    let all = [&older, &newer, &other, &of_before].map(|one| one.version().clone());
    assert_eq!(store.variants(&name).unwrap(), HashSet::from(all));
    store.open_version(&name, of_before.version()).unwrap();
}

#[test]
fn another_size_is_another_recipe_of_the_same_image() {
    let catalog = RecipeCatalog::load(None).unwrap();
    let own = catalog.get(&TemplateName::parse("base").unwrap()).unwrap();
    let size = TemplateSize {
        memory: MemoryMib::new(1024).unwrap(),
        vcpus: Vcpus::new(2).unwrap(),
    };
    let sized = own.in_size(size);
    assert_eq!((sized.size(), &sized.image), (size, &own.image));
    assert_ne!(sized.hash(), own.hash());
    assert_eq!(sized.in_size(own.size()).hash(), own.hash());
}
