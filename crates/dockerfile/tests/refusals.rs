//! What is refused: always with the line, what it is and what to do.
#![expect(clippy::panic, reason = "a test without its plan must fail")]

use std::collections::BTreeMap;

use dayfly_dockerfile::{DockerfileError, LineProblem, StageConfig, parse};

/// The error of an instruction in line 3, as the text of its problem.
fn refused(instruction: &str) -> String {
    let error = match parse(&format!(
        "FROM base AS one\nFROM base AS two\n{instruction}\n"
    )) {
        Err(error) => error,
        Ok(file) => panic!("{instruction} is accepted: {file:?}"),
    };
    assert_eq!(error.line(), Some(3), "{instruction}: {error}");
    error.to_string()
}

#[test]
fn unknown_instructions_and_flags_are_refused() {
    let cases = [
        ("RUNN x", "unknown instruction \"RUNN\""),
        ("EOF", "unknown instruction"),
        ("日本 x", "unknown instruction"),
        ("FROM --as=x y", "\"--as\""),
        ("RUN --mounts=x y", "\"--mounts\""),
        ("RUN --mount y", "no value"),
        ("RUN -- y", "\"--\""),
        ("COPY --chwon=x a b", "\"--chwon\""),
        ("COPY --chown=a --chown=b a b", "more than once"),
        ("COPY --chown= a b", "no value"),
        ("COPY --link=maybe a b", "true or false"),
        ("ADD --from=one a b", "\"--from\""),
        ("HEALTHCHECK --every=5s CMD x", "\"--every\""),
        ("HEALTHCHECK --interval=5s NONE", "\"--interval\""),
        ("CMD --help", "\"--help\""),
        ("ENV --x=1 a=b", "\"--x\""),
        ("COPY --chown=\"a b\" a b", "quote"),
    ];
    for (instruction, expected) in cases {
        let error = refused(instruction);
        assert!(error.contains(expected), "{instruction}: {error}");
    }
}

#[test]
fn what_docker_has_and_this_server_has_not_says_what_to_do_instead() {
    let cases = [
        (
            "ONBUILD RUN x",
            "ONBUILD is not supported; put the instruction",
        ),
        ("FROM --platform=linux/arm64 x", "use linux/amd64"),
        ("RUN --network=none x", "network policy"),
        ("RUN --network=host x", "network policy"),
        ("RUN --security=insecure x", "remove it"),
        ("RUN --mount=type=secret,id=x y", "no secret"),
        ("RUN --mount=type=ssh y", "no secret"),
        ("RUN --mount=type=cache,target=/x,from=one y", "\"from\""),
        ("RUN --mount=from=$x,target=/x y", "variable in from"),
        ("COPY --parents a b", ".dockerignore"),
        ("COPY --exclude=x a b", ".dockerignore"),
        ("COPY --from=$x a b", "variable in from"),
        ("COPY <<EOF a /b/\nEOF", "of its own"),
        ("COPY --from=one <<EOF /b/\nEOF", "of its own"),
        ("COPY --chmod=u+x a b", "RUN chmod"),
        ("ADD https://example.com/x /x", "fetch it with RUN"),
        ("ADD git@github.com:a/b.git /x", "fetch it with RUN"),
        ("COPY https://example.com/x /x", "fetch it with RUN"),
        ("ADD --checksum=sha256:0 a b", "fetch and unpack with RUN"),
        ("ENV a=${b#c}", "change the value in RUN"),
    ];
    for (instruction, expected) in cases {
        let error = refused(instruction);
        let parents = instruction.contains("--parents");
        let expected = if parents { "COPY each" } else { expected };
        assert!(error.contains(expected), "{instruction}: {error}");
    }
}

#[test]
fn what_is_not_valid_is_refused() {
    let cases = [
        "RUN",
        "RUN []",
        "RUN [\"a\", 1]",
        "CMD",
        "CMD [[\"a\"]]",
        "CMD [\"a\\u0000\"]",
        "ENTRYPOINT",
        "SHELL sh",
        "SHELL []",
        "ENV a",
        "ENV a=b c",
        "ENV a='b",
        "ENV a=${b",
        "ARG",
        "ARG =a",
        "ARG a=${",
        "USER",
        "USER ${",
        "WORKDIR",
        "LABEL a",
        "EXPOSE ${",
        "COPY a",
        "COPY [\"a\"]",
        "COPY [\"a\", 1]",
        "COPY a b c",
        "COPY --from=1 a b",
        "COPY --from=two a b",
        "COPY --from=7 a b",
        "COPY --chmod=9 a b",
        "COPY --chmod=17777 a b",
        "COPY <<EOF /x\nno end",
        "COPY a <<EOF\nEOF",
        "COPY << EOF /x\nEOF",
        "COPY <<a/b /x\na/b",
        "COPY <<.. /x\n..",
        "COPY <<a <<a /x/\na\na",
        "COPY <<a <<b /x\na\nb",
        "COPY <<a /x\n${\na",
    ];
    for instruction in cases {
        refused(instruction);
    }
}

#[test]
fn runs_health_checks_and_stages_that_are_not_valid_are_refused() {
    let cases = [
        "RUN <<EOF\nno end",
        "RUN cat <<EOF\nno end",
        "RUN --mount=type=cache,target= x",
        "RUN --mount=type=cache,target=/a,target=/b x",
        "RUN --mount=type=cache,target=/a,mode=x x",
        "RUN --mount=type=cache,target=/a,uid=-1 x",
        "RUN --mount=type=cache,target=/a,sharing=x x",
        "RUN --mount=type=tmpfs,target=/a,size=1x x",
        "RUN --mount=type=tmpfs,target=/a,size=99999999999g x",
        "RUN --mount=type=what,target=/a x",
        "RUN --mount=target=/a,ro=maybe x",
        "RUN --mount=target=/a,nonsense x",
        "RUN --mount=from=two,target=/a x",
        "HEALTHCHECK",
        "HEALTHCHECK CMD",
        "HEALTHCHECK CMD []",
        "HEALTHCHECK EXEC x",
        "HEALTHCHECK NONE x",
        "HEALTHCHECK --interval=5 CMD x",
        "HEALTHCHECK --retries=-1 CMD x",
        "FROM",
        "FROM a b",
        "FROM a AS",
        "FROM a AS 1x",
        "FROM a AS b c",
        "FROM a AS one",
        "FROM a AS ONE",
        "FROM a AS scratch",
        "FROM ${",
    ];
    for instruction in cases {
        refused(instruction);
    }
}

#[test]
fn values_that_turn_out_wrong_are_refused_with_their_line() {
    let cases = [
        "USER $none",
        "WORKDIR $none",
        "ENV $none=x",
        "COPY --chmod=$none a b",
        "COPY a b $x",
        "ADD $url /x",
        "RUN --mount=type=cache,target=$none x",
        "RUN --mount=type=cache,target=/a/.. x",
        "RUN --mount=type=cache x",
        "ENV a=\"${none:?must be there}\"",
        "ARG a=${none?}",
        "ARG nul",
    ];
    let given = [("nul", "a\0b")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let given = BTreeMap::from(given);
    for instruction in cases {
        let text = format!("FROM base\nENV url=http://x x=y\n{instruction}");
        let file = parse(&text).unwrap_or_else(|error| panic!("{instruction}: {error}"));
        let error = file.plan(0, &StageConfig::default(), &given).unwrap_err();
        assert_eq!(error.line(), Some(3), "{instruction}: {error}");
    }
}

#[test]
fn a_file_needs_a_stage_and_begins_with_it() {
    for text in ["", "# nothing\n", "ARG a\n"] {
        assert_eq!(parse(text), Err(DockerfileError::NoStage));
    }
    for text in ["RUN x\nFROM a", "ENV a=b\nFROM a"] {
        assert_eq!(parse(text).unwrap_err().line(), Some(1));
    }
    assert_eq!(parse("FROM a\nRUN \0").unwrap_err().line(), Some(2));
    assert_eq!(parse("# escape=x\nFROM a").unwrap_err().line(), Some(1));
}

#[test]
fn a_stage_that_comes_later_is_refused_where_it_is_named() {
    let text = "FROM a\nCOPY --from=later x y\nFROM b AS later";
    let error = parse(text).unwrap_err();
    assert_eq!(error.line(), Some(2));
    assert!(error.to_string().contains("later"), "{error}");
    let text = "FROM a\nRUN --mount=from=Later,target=/x y\nFROM b AS later";
    assert_eq!(parse(text).unwrap_err().line(), Some(2));
}

#[test]
fn amounts_are_bounded() {
    let long = format!("FROM a\n# {}", "x".repeat(70_000));
    assert!(matches!(parse(&long), Err(DockerfileError::TooLong { .. })));
    let steps = |count| format!("FROM a\n{}", "RUN x\n".repeat(count));
    assert!(parse(&steps(500)).is_ok());
    assert_eq!(parse(&steps(501)).unwrap_err().line(), Some(502));
    let stages = |count| "FROM a\n".repeat(count);
    assert!(parse(&stages(50)).is_ok());
    assert_eq!(parse(&stages(51)).unwrap_err().line(), Some(51));
    let sources = |count| format!("FROM a\nCOPY {}/", "x ".repeat(count));
    assert!(parse(&sources(256)).is_ok());
    assert!(parse(&sources(257)).is_err());
}

#[test]
fn values_that_double_themselves_have_an_end() {
    let mut text = format!("FROM a\nENV a={}\n", "x".repeat(1000));
    text.push_str(&"ENV a=$a$a\n".repeat(100));
    let file = parse(&text).unwrap();
    let none = BTreeMap::new();
    let error = file.plan(0, &StageConfig::default(), &none).unwrap_err();
    let is_too_much = |error: &DockerfileError| {
        let too_much = |problem: &LineProblem| matches!(problem, LineProblem::TooMuch { .. });
        matches!(error, DockerfileError::Line { problem, .. } if too_much(problem))
    };
    assert!(is_too_much(&error), "{error}");
    // Without a variable that grows: the same long one again and again.
    let mut text = format!("FROM a\nARG a={}\n", "x".repeat(30_000));
    text.push_str(&format!("COPY {} /x/\n", "$a ".repeat(200)));
    let file = parse(&text).unwrap();
    let error = file.plan(0, &StageConfig::default(), &none).unwrap_err();
    assert!(is_too_much(&error), "{error}");
    let mut text = format!("ARG a={}\n", "x".repeat(1000));
    text.push_str(&"ARG a=$a$a\n".repeat(100));
    text.push_str("FROM $a");
    assert!(parse(&text).unwrap().base(0, &none).is_err());
}

#[test]
fn errors_hold_little_of_what_was_written() {
    let long = "x".repeat(50_000);
    for text in [
        long.clone(),
        format!("FROM a AS 1{long}"),
        format!("FROM a\nCOPY --{long} a b"),
        format!("FROM a\nRUN <<{long}"),
        format!("FROM a\nUSER '{long}"),
        format!("FROM a\nHEALTHCHECK --interval={long} CMD a"),
        format!("FROM a\nRUN --mount={long} a"),
    ] {
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.len() < 400, "{error}");
    }
    for text in [
        "\u{1b}[2J",
        "FROM a\nCOPY --\u{1b}[2J a b",
        "FROM a\nENV \u{1b}[2J",
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(!error.contains(char::is_control), "{error:?}");
    }
}
