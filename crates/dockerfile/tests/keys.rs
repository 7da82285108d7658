//! Keys of steps: what changes them, and what does not.
#![expect(clippy::unwrap_used, reason = "a test without its plan must fail")]

use std::collections::{BTreeMap, BTreeSet};

use dayfly_dockerfile::{StageConfig, StepKey, StepWork, parse};

/// The key after all steps of a stage; content is what every COPY takes.
fn key(body: &str, content: &str) -> StepKey {
    let file = parse(&format!("FROM a\n{body}")).unwrap();
    let plan = file.plan(0, &StageConfig::default(), &BTreeMap::new());
    let steps = plan.unwrap().steps.into_iter();
    steps.fold(StepKey::base("image"), |key, step| {
        let takes = matches!(step.work, StepWork::Copy { .. });
        key.then(&step.work, takes.then_some(content))
    })
}

#[test]
fn every_change_that_can_be_seen_changes_the_key() {
    let bodies = [
        "",
        "RUN x",
        "RUN y",
        "RUN x\nRUN x",
        "RUN [\"x\"]",
        "RUN <<E\n#!x\nE",
        "SHELL [\"s\"]\nRUN x",
        "ENV a=1\nRUN x",
        "ENV a=2\nRUN x",
        "ENV b=1\nRUN x",
        "ARG a\nARG a=3\nRUN x",
        "USER u\nRUN x",
        "WORKDIR /d",
        "WORKDIR /d\nRUN x",
        "USER u\nWORKDIR /d",
        "RUN --mount=type=cache,target=/c x",
        "RUN --mount=type=cache,target=/c,id=i x",
        "RUN --mount=target=/c x",
        "COPY a /b",
        "COPY a /c",
        "COPY a /b/",
        "COPY b /b",
        "ADD a /b",
        "COPY --chown=u a /b",
        "COPY --chmod=7 a /b",
        "COPY --from=x a /b",
        "COPY <<a /b\n1\na",
        "COPY <<a /b\n2\na",
        "COPY <<c /b\n1\nc",
    ];
    let keys: BTreeSet<StepKey> = bodies.iter().map(|body| key(body, "content")).collect();
    assert_eq!(keys.len(), bodies.len());
    assert_ne!(key("COPY a /b", "content"), key("COPY a /b", "other"));
    assert_ne!(StepKey::base("image"), StepKey::base("other"));
}

#[test]
fn what_cannot_be_seen_leaves_the_key() {
    let same = [
        ("RUN x", "# a comment\n\nrun   x   \nLABEL a=b"),
        ("RUN x", "RUN x\nENV a=1\nUSER u\nCMD x\nARG c=d"),
        ("ENV a=1 b=2\nRUN x", "ENV b=2\nENV a=0\nARG a=1\nRUN x"),
        ("COPY a /w/b", "COPY ./a/ /w/./b"),
        ("COPY a /b", "COPY --link a /b"),
    ];
    for (one, other) in same {
        assert_eq!(key(one, "content"), key(other, "content"), "{other:?}");
    }
}

#[test]
fn parts_cannot_be_moved_into_each_other() {
    let run = |text: &str| StepWork::MakeDirectory {
        path: text.to_owned(),
        user: None,
    };
    let base = StepKey::base("a");
    let with = base.then(&run("/a"), Some(""));
    let without = base.then(&run("/a"), None);
    assert_ne!(with, without);
    assert_ne!(StepKey::base(with.as_str()), with);
}

#[test]
fn a_key_is_the_same_in_every_release() {
    // A change here throws away the cache of every host: say so in the changelog.
    let key = key("ENV a=1\nRUN x", "");
    let expected = "ad6b62dadf15c1bae3ee8a0e23d8cf8d19defc2b7ec899173099b099219a36ea";
    assert_eq!(key.to_string(), expected);
    assert_eq!(key.as_str().len(), 64);
}
