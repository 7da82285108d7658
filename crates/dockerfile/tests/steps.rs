//! What the instructions of one stage become.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test without its plan must fail"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use dayfly_dockerfile::{
    CacheSharing, CopyFrom, InlineFile, MountFrom, RunCommand, RunMount, StageConfig,
    StageHealthCommand, StagePlan, StepWork, parse,
};

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

/// The plan of the first stage.
fn plan_with(body: &str, base: &StageConfig, arguments: &[(&str, &str)]) -> StagePlan {
    let file = parse(&format!("FROM base\n{body}")).unwrap_or_else(|error| panic!("{error}"));
    let plan = file.plan(0, base, &map(arguments));
    plan.unwrap_or_else(|error| panic!("{error}"))
}

fn plan(body: &str) -> StagePlan {
    plan_with(body, &StageConfig::default(), &[])
}

fn works(body: &str) -> Vec<StepWork> {
    let steps = plan(body).steps.into_iter();
    steps.map(|step| step.work).collect()
}

fn only(body: &str) -> StepWork {
    let mut works = works(body);
    works.retain(|work| *work != StepWork::Nothing);
    assert_eq!(works.len(), 1, "{works:?}");
    works.remove(0)
}

/// All variables that the last RUN starts with, but PATH.
fn environment(plan: &StagePlan) -> BTreeMap<String, String> {
    let StepWork::Run { environment, .. } = &plan.steps.last().unwrap().work else {
        panic!("the last step is no RUN");
    };
    let mut environment = environment.clone();
    environment.remove("PATH");
    environment
}

fn shell(text: &str) -> RunCommand {
    RunCommand::Shell {
        shell: words(&["/bin/sh", "-c"]),
        text: text.to_owned(),
    }
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn run_has_a_command_in_either_form() {
    let script = |text: &str| RunCommand::Script(text.to_owned());
    let cases = [
        ("RUN echo  $HOME", shell("echo  $HOME")),
        ("run echo a \\\n  && echo b", shell("echo a   && echo b")),
        ("RUN a \\\n# no\n\n  b", shell("a   b")),
        (
            "RUN [\"a\", \"b c\", \"\\\"\"]",
            RunCommand::Words(words(&["a", "b c", "\""])),
        ),
        ("RUN [ -e x ] || true", shell("[ -e x ] || true")),
        ("RUN [[ -e x ]]", shell("[[ -e x ]]")),
        ("RUN ['a']", shell("['a']")),
        // A document alone is the command.
        ("RUN <<EOF\na\n\nb $x\nEOF", shell("a\n\nb $x\n")),
        ("RUN <<-EOF\n\ta\n\t\tb\n\tEOF", shell("a\nb\n")),
        ("RUN << 'E F'\na\nE F", shell("a\n")),
        ("RUN <<EOF\nUSER x\n# kept\nEOF", shell("USER x\n# kept\n")),
        (
            "RUN <<EOF\n#!/usr/bin/env python3\nprint(1)\nEOF",
            script("#!/usr/bin/env python3\nprint(1)\n"),
        ),
        // Others go to the shell with their documents.
        (
            "RUN cat <<EOF > /x && cat /x\nRUN y\nEOF",
            shell("cat <<EOF > /x && cat /x\nRUN y\nEOF"),
        ),
        (
            "RUN <<EOF python3\nprint(1)\nEOF",
            shell("<<EOF python3\nprint(1)\nEOF"),
        ),
        (
            "RUN cat <<A - 3<<'B'\na\nA\nb\nB",
            shell("cat <<A - 3<<'B'\na\nA\nb\nB"),
        ),
        ("RUN cat <<<word", shell("cat <<<word")),
        ("RUN echo '<<EOF'", shell("echo '<<EOF'")),
        (
            "RUN [\"cat\", \"<<EOF\"]",
            RunCommand::Words(words(&["cat", "<<EOF"])),
        ),
        // Two escape characters at the end of a line do not continue it.
        ("RUN echo a\\\\\nLABEL a=b", shell("echo a\\\\")),
    ];
    for (body, expected) in cases {
        let StepWork::Run { command, .. } = only(body) else {
            panic!("{body} is no RUN");
        };
        assert_eq!(command, expected, "{body}");
    }
}

#[test]
fn run_starts_with_what_stands_before_it() {
    let body = "ENV a=1\nARG b=2\nUSER me:us\nWORKDIR /w\nSHELL [\"/bin/bash\", \"-c\"]\nRUN x";
    let last = plan(body).steps.pop().unwrap();
    assert_eq!((last.line, last.text.as_str()), (7, "RUN x"));
    let expected = StepWork::Run {
        command: RunCommand::Shell {
            shell: words(&["/bin/bash", "-c"]),
            text: "x".to_owned(),
        },
        environment: map(&[("PATH", PATH), ("a", "1"), ("b", "2")]),
        user: Some("me:us".to_owned()),
        directory: "/w".to_owned(),
        mounts: Vec::new(),
    };
    assert_eq!(last.work, expected);
}

#[test]
fn variables_are_those_that_docker_has() {
    let cases: [(&str, &[(&str, &str)]); 16] = [
        (
            "ENV a=1 b='2 3' c=\"4\\\"\"",
            &[("a", "1"), ("b", "2 3"), ("c", "4\"")],
        ),
        ("ENV a 1  2", &[("a", "1  2")]),
        (
            "ENV a=hello\nENV a=bye b=$a",
            &[("a", "bye"), ("b", "hello")],
        ),
        (
            "ENV a=1\nENV b=\\$a c='$a'",
            &[("a", "1"), ("b", "$a"), ("c", "$a")],
        ),
        ("ENV a=${b:-d} c=${b:+e}", &[("a", "d"), ("c", "")]),
        ("ENV PATH=/x:$PATH", &[]),
        ("ENV n=k\nENV $n=v", &[("n", "k"), ("k", "v")]),
        // An ARG without a value is no variable.
        ("ARG a", &[]),
        ("ARG a=1 b=$a", &[("a", "1"), ("b", "1")]),
        ("ARG a=1\nARG a", &[("a", "1")]),
        ("ARG given=no", &[("given", "yes")]),
        ("ARG given", &[("given", "yes")]),
        // Given values are not expanded.
        ("ARG raw", &[("raw", "$given")]),
        // The later of two is in force.
        ("ARG a=1\nENV a=2", &[("a", "2")]),
        ("ENV a=1\nARG a=2\nENV b=$a", &[("a", "2"), ("b", "2")]),
        (
            "ARG TARGETARCH\nARG HTTP_PROXY=x",
            &[("TARGETARCH", "amd64"), ("HTTP_PROXY", "x")],
        ),
    ];
    let given = [
        ("given", "yes"),
        ("raw", "$given"),
        ("http_proxy", "http://p"),
    ];
    for (body, expected) in cases {
        let plan = plan_with(&format!("{body}\nRUN x"), &StageConfig::default(), &given);
        assert_eq!(environment(&plan), map(expected), "{body}");
    }
    let path = plan("ENV PATH=/x:$PATH").config.environment;
    assert_eq!(path, map(&[("PATH", &format!("/x:{PATH}"))]));
}

#[test]
fn arguments_are_not_in_the_config_of_the_image() {
    let config = plan("ARG a=1\nENV b=$a\nENV c=1\nARG c=2").config;
    let expected = map(&[("PATH", PATH), ("b", "1"), ("c", "1")]);
    assert_eq!(config.environment, expected);
    assert_eq!(config.arguments, map(&[("a", "1"), ("c", "2")]));
}

#[test]
fn nothing_is_expanded_where_docker_does_not() {
    let plan = plan("ENV a=1\nCMD [\"$a\"]\nENTRYPOINT [\"${a}\"]\nHEALTHCHECK CMD $a");
    assert_eq!(plan.config.command, words(&["$a"]));
    assert_eq!(plan.config.entry_point, words(&["${a}"]));
    let health = plan.config.health.unwrap();
    assert_eq!(health.command, StageHealthCommand::Shell("$a".to_owned()));
}

#[test]
fn directories_are_joined_and_made_by_the_user_of_the_moment() {
    let body = "WORKDIR /a\nWORKDIR b\nENV d=c\nUSER me\nWORKDIR ../$d\nWORKDIR \"/with space\"";
    let made: Vec<(String, Option<String>)> = works(body)
        .into_iter()
        .filter_map(|work| match work {
            StepWork::MakeDirectory { path, user } => Some((path, user)),
            StepWork::Run { .. } | StepWork::Copy { .. } | StepWork::Nothing => None,
        })
        .collect();
    let me = || Some("me".to_owned());
    let expected = [
        ("/a".to_owned(), None),
        ("/a/b".to_owned(), None),
        ("/a/c".to_owned(), me()),
        ("/with space".to_owned(), me()),
    ];
    assert_eq!(made, expected);
    let directory = plan(body).config.directory;
    assert_eq!(directory.as_deref(), Some("/with space"));
}

#[test]
fn commands_and_entry_points_replace_each_other_as_docker_does() {
    let base = StageConfig {
        command: words(&["base"]),
        entry_point: words(&["entry"]),
        ..StageConfig::default()
    };
    let sh = |text: &str| words(&["/bin/sh", "-c", text]);
    let entry = || words(&["entry"]);
    let cases = [
        ("", entry(), words(&["base"])),
        ("CMD a b", entry(), sh("a b")),
        ("CMD [\"a\", \"b\"]", entry(), words(&["a", "b"])),
        ("CMD []", entry(), Vec::new()),
        // ENTRYPOINT resets what the base starts, and not what this stage says.
        ("ENTRYPOINT [\"e\"]", words(&["e"]), Vec::new()),
        (
            "CMD [\"c\"]\nENTRYPOINT [\"e\"]",
            words(&["e"]),
            words(&["c"]),
        ),
        (
            "ENTRYPOINT [\"e\"]\nCMD [\"c\"]",
            words(&["e"]),
            words(&["c"]),
        ),
        ("ENTRYPOINT e f", sh("e f"), Vec::new()),
        ("ENTRYPOINT []", Vec::new(), Vec::new()),
        ("ENTRYPOINT [ ]\nCMD [\"c\"]", Vec::new(), words(&["c"])),
        ("SHELL [\"s\"]\nCMD a", entry(), words(&["s", "a"])),
        ("CMD a\nCMD [\"c\"]", entry(), words(&["c"])),
    ];
    for (body, entry_point, command) in cases {
        let config = plan_with(body, &base, &[]).config;
        assert_eq!(config.entry_point, entry_point, "{body}");
        assert_eq!(config.command, command, "{body}");
    }
}

#[test]
fn health_checks_have_times_and_can_be_turned_off() {
    let body = "HEALTHCHECK --interval=1m30s --timeout=500ms --start-period=0s --retries=4 \\\n --start-interval=2s CMD [\"a\", \"b\"]";
    let health = plan(body).config.health.unwrap();
    assert_eq!(
        health.command,
        StageHealthCommand::Words(words(&["a", "b"]))
    );
    assert_eq!(health.interval, Some(Duration::from_secs(90)));
    assert_eq!(health.timeout, Some(Duration::from_millis(500)));
    assert_eq!(health.start_period, None);
    assert_eq!(health.start_interval, Some(Duration::from_secs(2)));
    assert_eq!(health.retries, Some(4));
    let base = plan("HEALTHCHECK CMD x || exit 1").config;
    assert!(base.health.is_some());
    assert_eq!(
        plan_with("healthcheck none", &base, &[]).config.health,
        None
    );
    assert_eq!(plan_with("USER a", &base, &[]).config.health, base.health);
}

fn copied(sources: &[&str], destination: &str, is_directory: bool) -> StepWork {
    StepWork::Copy {
        from: CopyFrom::Context,
        sources: words(sources),
        destination: destination.to_owned(),
        destination_is_directory: is_directory,
        owner: None,
        mode: None,
        unpacks: false,
    }
}

#[test]
fn copies_have_clean_sources_and_absolute_destinations() {
    let cases = [
        ("COPY a /b", copied(&["a"], "/b", false)),
        ("COPY a b", copied(&["a"], "/w/b", false)),
        ("COPY a .", copied(&["a"], "/w", true)),
        ("COPY a ./", copied(&["a"], "/w", true)),
        ("COPY a /x/", copied(&["a"], "/x", true)),
        ("COPY a /", copied(&["a"], "/", true)),
        ("COPY a /x/.", copied(&["a"], "/x", true)),
        ("COPY . .", copied(&[""], "/w", true)),
        ("COPY / /x", copied(&[""], "/x", false)),
        ("COPY ../../a/./b/ x", copied(&["a/b"], "/w/x", false)),
        ("COPY a* b/?c .", copied(&["a*", "b/?c"], "/w", true)),
        ("COPY [\"a b\", \"c d/\"]", copied(&["a b"], "/w/c d", true)),
        ("COPY [\"<<EOF\", \"x\"]", copied(&["<<EOF"], "/w/x", false)),
        ("COPY $v ${v}/", copied(&["val"], "/w/val", true)),
        ("COPY --link a b", copied(&["a"], "/w/b", false)),
        ("COPY --link=false a b", copied(&["a"], "/w/b", false)),
        ("COPY a $none", copied(&["a"], "/w", true)),
    ];
    for (body, expected) in cases {
        let steps = plan(&format!("ENV v=val\nWORKDIR /w\n{body}")).steps;
        assert_eq!(steps.last().unwrap().work, expected, "{body}");
    }
}

#[test]
fn copies_have_owners_modes_and_other_places() {
    let StepWork::Copy { owner, mode, .. } = only("ARG u=me\nCOPY --chown=$u:9 --chmod=0755 a b")
    else {
        panic!("no copy");
    };
    assert_eq!((owner.as_deref(), mode), (Some("me:9"), Some(0o755)));
    let StepWork::Copy { from, .. } = only("COPY --from=Docker.io/x:1 a b") else {
        panic!("no copy");
    };
    assert_eq!(from, CopyFrom::Image("Docker.io/x:1".to_owned()));
    let StepWork::Copy { unpacks, from, .. } = only("ADD a.tar /b/") else {
        panic!("no copy");
    };
    assert_eq!((unpacks, from), (true, CopyFrom::Context));
}

#[test]
fn documents_become_files() {
    let file = |name: &str, content: &str| InlineFile {
        name: name.to_owned(),
        content: content.to_owned(),
    };
    let cases = [
        (
            "COPY <<EOF /x\na $v\nEOF",
            vec![file("EOF", "a val\n")],
            "/x",
            false,
        ),
        (
            "COPY <<'EOF' /x\na $v\nEOF",
            vec![file("EOF", "a $v\n")],
            "/x",
            false,
        ),
        (
            "ADD <<-a /x/\n\tit's \\$v\n\ta",
            vec![file("a", "it's $v\n")],
            "/x",
            true,
        ),
        (
            "COPY <<a <<b /x/\n1\na\nUSER x\nb",
            vec![file("a", "1\n"), file("b", "USER x\n")],
            "/x",
            true,
        ),
    ];
    for (body, files, path, is_directory) in cases {
        let StepWork::Copy {
            from,
            sources,
            destination,
            destination_is_directory,
            unpacks,
            ..
        } = only(&format!("ENV v=val\n{body}"))
        else {
            panic!("no copy");
        };
        assert_eq!(from, CopyFrom::Inline(files), "{body}");
        assert_eq!(
            (destination.as_str(), destination_is_directory),
            (path, is_directory)
        );
        assert!(sources.is_empty() && !unpacks);
    }
}

fn cache(id: &str, target: &str) -> RunMount {
    RunMount::Cache {
        id: id.to_owned(),
        target: target.to_owned(),
        sharing: CacheSharing::Shared,
        mode: 0o755,
        uid: 0,
        gid: 0,
        read_only: false,
    }
}

#[test]
fn mounts_are_caches_memory_or_other_files() {
    let bind = |source: &str, target: &str, writable| RunMount::Bind {
        from: MountFrom::Context,
        source: source.to_owned(),
        target: target.to_owned(),
        writable,
    };
    let temporary = |size_bytes| RunMount::Temporary {
        target: "/t".to_owned(),
        size_bytes,
    };
    let cases = [
        ("type=cache,target=/c", cache("/c", "/c")),
        (
            "type=cache,target=c/../$v,id=i-$v",
            cache("i-val", "/w/val"),
        ),
        (
            "type=cache,dst=/c,sharing=locked,mode=0700,uid=1,gid=2,ro",
            RunMount::Cache {
                id: "/c".to_owned(),
                target: "/c".to_owned(),
                sharing: CacheSharing::Locked,
                mode: 0o700,
                uid: 1,
                gid: 2,
                read_only: true,
            },
        ),
        ("type=tmpfs,target=/t", temporary(None)),
        ("type=tmpfs,target=/t,size=64m", temporary(Some(64 << 20))),
        ("type=bind,target=/b", bind("", "/b", false)),
        ("target=/b,source=../$v/x,rw", bind("val/x", "/b", true)),
        ("target=/b,src=x,readonly=false", bind("x", "/b", true)),
        ("target=.", bind("", "/w", false)),
        // Without a target it is the directory of the moment.
        ("source=x,readwrite", bind("x", "/w", true)),
        ("type=cache", cache("/w", "/w")),
        (
            "from=alpine:3,target=/b,source=/etc",
            RunMount::Bind {
                from: MountFrom::Image("alpine:3".to_owned()),
                source: "etc".to_owned(),
                target: "/b".to_owned(),
                writable: false,
            },
        ),
    ];
    for (text, expected) in cases {
        let body = format!("ENV v=val\nWORKDIR /w\nRUN --network=default --mount={text} make");
        let StepWork::Run {
            mounts, command, ..
        } = plan(&body).steps.pop().unwrap().work
        else {
            panic!("no run");
        };
        assert_eq!(mounts, [expected], "{text}");
        assert_eq!(command, shell("make"));
    }
}

#[test]
fn a_run_may_have_several_mounts() {
    let two = "RUN --mount=type=cache,target=/a --mount=type=cache,target=/b x";
    let StepWork::Run { mounts, .. } = only(two) else {
        panic!("no run");
    };
    assert_eq!(mounts, [cache("/a", "/a"), cache("/b", "/b")]);
}

#[test]
fn what_changes_nothing_here_is_accepted() {
    let body = "LABEL a=b \"c d\"='e'\nEXPOSE 80/tcp $p\nSTOPSIGNAL SIGTERM\nMAINTAINER me <a@b>\nVOLUME /a /b\nVOLUME [\"/c\"]\nVOLUME []";
    let plan = plan(body);
    assert_eq!(plan.steps.len(), 7);
    assert!(plan.steps.iter().all(|step| step.work == StepWork::Nothing));
    let expected = StageConfig {
        environment: map(&[("PATH", PATH)]),
        ..StageConfig::default()
    };
    assert_eq!(plan.config, expected);
}

#[test]
fn the_text_of_a_step_is_one_short_line() {
    let text = |body: &str| plan(body).steps.remove(0).text;
    assert_eq!(text("RUN a \\\n    && b"), "RUN a && b");
    let long = text(&format!("RUN {}", "é".repeat(500)));
    assert_eq!(long.chars().count(), 200);
    assert!(long.ends_with('…'));
}

#[test]
fn the_text_of_a_step_controls_no_terminal() {
    let text = plan("RUN a\u{1b}[2J\u{7}b").steps.remove(0).text;
    assert_eq!(text, "RUN a\u{fffd}[2J\u{fffd}b");
}

#[test]
fn another_escape_character_is_used_everywhere() {
    let text =
        "# escape=`\nFROM base\nENV a=c:\\x b=`$a\nRUN dir `\n  c:\\\nCOPY <<EOF /x\n\\$a\nEOF";
    let plan = parse(text).unwrap();
    let plan = plan.plan(0, &StageConfig::default(), &map(&[])).unwrap();
    assert_eq!(plan.config.environment["a"], "c:\\x");
    assert_eq!(plan.config.environment["b"], "$a");
    let StepWork::Run { command, .. } = &plan.steps[1].work else {
        panic!("no run");
    };
    assert_eq!(*command, shell("dir   c:\\"));
    assert!(
        matches!(&plan.steps[2].work, StepWork::Copy { from: CopyFrom::Inline(files), .. }
        if files[0].content == "$a\n")
    );
}
