//! Manifests of templates.
//!
//! What is promised for any text: no panic; what is accepted names plain files; and what was read,
//! written again, is read as the same.

use dayfly_snapshots::TemplateManifest;

use super::{Inputs, texts};

pub(super) fn check(input: &[u8]) {
    let Ok(manifest) = TemplateManifest::parse(input) else {
        return;
    };
    for entry in &manifest.files {
        let name = &entry.name;
        assert!(
            !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != "..",
            "not a plain name: {name:?}"
        );
    }
    let text = manifest.to_json();
    let again = text.as_ref().map(|text| TemplateManifest::parse(text));
    assert!(
        matches!(&again, Ok(Ok(again)) if *again == manifest),
        "written again it is {again:?}"
    );
}

pub(super) fn seeds() -> Inputs {
    texts(&[
        include_str!("../../../crates/snapshots/schema/manifest-1.json"),
        include_str!("../../../crates/snapshots/schema/manifest-2.json"),
        include_str!("../../../crates/snapshots/schema/manifest-3.json"),
        r#"{"format": 99}"#,
    ])
}
