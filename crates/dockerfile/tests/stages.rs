//! Stages: what they are built on, which are needed, and what they leave to each other.

use std::collections::BTreeMap;

use dayfly_dockerfile::{CopyFrom, DockerfileError, StageBase, StageConfig, StepWork, parse};

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn base(text: &str, arguments: &[(&str, &str)]) -> Result<StageBase, DockerfileError> {
    let file = parse(text)?;
    file.base(file.stages() - 1, &map(arguments))
}

#[test]
fn a_base_is_an_image_an_earlier_stage_or_nothing() {
    let image = |name: &str| StageBase::Image(name.to_owned());
    let cases = [
        ("FROM debian:12", image("debian:12")),
        ("from Debian As X", image("Debian")),
        ("FROM scratch", StageBase::Scratch),
        ("FROM a AS b\nFROM B", StageBase::Stage(0)),
        ("FROM a AS b\nFROM b AS c\nFROM c", StageBase::Stage(1)),
        // A name of a later stage, or of the stage itself, is an image.
        ("FROM b AS b", image("b")),
        ("ARG v=12\nFROM debian:$v", image("debian:12")),
        ("ARG n=d\nARG i=$n:1\nFROM ${i}", image("d:1")),
        ("ARG v\nFROM debian:${v:-11}", image("debian:11")),
        ("ARG g=no\nFROM debian:$g", image("debian:yes")),
        (
            "FROM a AS x\nARG v=1\nFROM debian:${v:-2}",
            image("debian:2"),
        ),
        ("FROM --platform=linux/amd64 a", image("a")),
        ("FROM --platform=$BUILDPLATFORM a", image("a")),
        ("FROM --platform=${TARGETPLATFORM} a", image("a")),
        (
            "FROM --platform=$TARGETOS/$TARGETARCH a-$TARGETARCH",
            image("a-amd64"),
        ),
        ("ARG s=x\nFROM a AS x\nFROM $s", StageBase::Stage(0)),
        ("FROM \"debian:12\"", image("debian:12")),
    ];
    for (text, expected) in cases {
        assert_eq!(base(text, &[("g", "yes")]).unwrap(), expected, "{text}");
    }
}

#[test]
fn bases_that_cannot_be_built_on_are_refused_with_their_line() {
    let cases = [
        "ARG v\nFROM $v",
        "ARG a=linux/arm64\nFROM --platform=$a x",
        "ARG a\nFROM --platform=$a x",
        "ARG v=x\nFROM ${v:?}${w:?no w}",
    ];
    for text in cases {
        let error = base(text, &[]).unwrap_err();
        assert_eq!(error.line(), Some(2), "{text}: {error}");
    }
}

const FILE: &str = "ARG v=1
FROM one AS a
FROM two AS b
COPY --from=a x x
FROM a AS c
RUN --mount=from=1,target=/b x
FROM three AS d
ARG given
COPY --from=0 x x
FROM scratch
COPY --from=C x x
COPY --from=other/image x x
";

#[test]
fn only_what_the_target_needs_is_built_in_order() {
    let file = parse(FILE).unwrap();
    let needed = |target| file.needed(target, &map(&[])).unwrap();
    assert_eq!(needed(None), [0, 1, 2, 4]);
    assert_eq!(needed(Some("a")), [0]);
    assert_eq!(needed(Some("B")), [0, 1]);
    assert_eq!(needed(Some("c")), [0, 1, 2]);
    assert_eq!(needed(Some("d")), [0, 3]);
    assert_eq!(needed(Some("4")), [0, 1, 2, 4]);
    let error = file.needed(Some("e"), &map(&[])).unwrap_err();
    assert!(error.to_string().contains("a, b, c, d"), "{error}");
    assert!(file.needed(Some("5"), &map(&[])).is_err());
    assert_eq!((file.stages(), file.stage_name(3)), (5, Some("d")));
    let error = file.base(5, &map(&[])).unwrap_err();
    assert_eq!(error, DockerfileError::NoSuchStage { stage: 5 });
}

#[test]
fn sources_of_copies_are_stages_by_name_and_number() {
    let file = parse(FILE).unwrap();
    let plan = file.plan(4, &StageConfig::default(), &map(&[])).unwrap();
    let from = plan.steps.into_iter().filter_map(|step| match step.work {
        StepWork::Copy { from, .. } => Some(from),
        StepWork::Run { .. } | StepWork::MakeDirectory { .. } | StepWork::Nothing => None,
    });
    let expected = [
        CopyFrom::Stage(2),
        CopyFrom::Image("other/image".to_owned()),
    ];
    assert_eq!(from.collect::<Vec<_>>(), expected);
}

#[test]
fn arguments_that_nobody_declares_are_refused_but_proxies_are_not() {
    let file = parse(FILE).unwrap();
    let given = map(&[
        ("given", "1"),
        ("v", "2"),
        ("HTTPS_PROXY", "x"),
        ("no_proxy", "y"),
    ]);
    assert!(file.needed(None, &given).is_ok());
    let error = file.needed(None, &map(&[("other", "1")])).unwrap_err();
    let name = "other".to_owned();
    assert_eq!(error, DockerfileError::UnknownArgument { name });
}

#[test]
fn a_stage_inherits_from_the_stage_below_it() {
    let text = "ARG g=global
FROM image AS below
ARG a=1
ENV e=$a
ARG e=hidden
USER me
WORKDIR /w
SHELL [\"s\"]
CMD [\"c\"]
FROM below
WORKDIR x
ENV f=$a-$e-$g
ARG g
ENV h=$g
FROM image
ENV f=x$a
";
    let file = parse(text).unwrap();
    let none = map(&[]);
    let below = file.plan(0, &StageConfig::default(), &none).unwrap();
    let above = file.plan(1, &below.config, &none).unwrap().config;
    // Arguments come along; variables of the image are before them; global ones need an ARG.
    assert_eq!(above.environment["f"], "1-1-");
    assert_eq!(above.environment["h"], "global");
    assert_eq!(above.directory.as_deref(), Some("/w/x"));
    assert_eq!(above.user.as_deref(), Some("me"));
    assert_eq!(
        (above.shell, above.command),
        (vec!["s".to_owned()], vec!["c".to_owned()])
    );
    let other = file.plan(2, &StageConfig::default(), &none).unwrap().config;
    assert_eq!(other.environment["f"], "x");
}

#[test]
fn what_a_base_says_is_kept() {
    let base = StageConfig {
        environment: map(&[("PATH", "/bin"), ("b", "base")]),
        directory: Some("/d".to_owned()),
        shell: Vec::new(),
        ..StageConfig::default()
    };
    let file = parse("FROM x\nENV c=$b\nWORKDIR y").unwrap();
    let config = file.plan(0, &base, &map(&[])).unwrap().config;
    assert_eq!(
        config.environment,
        map(&[("PATH", "/bin"), ("b", "base"), ("c", "base")])
    );
    assert_eq!(config.directory.as_deref(), Some("/d/y"));
    assert_eq!(config.shell, ["/bin/sh", "-c"]);
    let large = StageConfig {
        environment: map(&[("b", &"b".repeat(200_000))]),
        ..StageConfig::default()
    };
    let error = file.plan(0, &large, &map(&[])).unwrap_err();
    assert_eq!(error, DockerfileError::BaseEnvironment);
}
