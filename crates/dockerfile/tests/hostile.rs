//! Any text: no panic, and what comes out keeps its promises.

use std::collections::BTreeMap;

use dayfly_dockerfile::{CopyFrom, MountFrom, RunMount, StageConfig, StepWork, parse};
use proptest::prelude::*;

/// Everything that can be asked of a text. What is refused names a line that is there.
fn ask(text: &str) {
    let given = [("a", "$a"), ("b", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let given = BTreeMap::from(given);
    let lines = text.split('\n').count();
    let check = |line: Option<usize>| {
        assert!(line.is_none_or(|line| (1..=lines).contains(&line)));
    };
    let file = match parse(text) {
        Ok(file) => file,
        Err(error) => return check(error.line()),
    };
    if let Ok(needed) = file.needed(None, &given) {
        assert_eq!(needed.last(), Some(&(file.stages() - 1)));
        assert!(needed.is_sorted());
    }
    for stage in 0..file.stages() {
        if let Err(error) = file.base(stage, &given) {
            check(error.line());
        }
        let plan = match file.plan(stage, &StageConfig::default(), &given) {
            Ok(plan) => plan,
            Err(error) => {
                check(error.line());
                continue;
            }
        };
        for step in plan.steps {
            check(Some(step.line));
            assert!(step.text.chars().count() <= 200 && !step.text.contains('\n'));
            promises(stage, &step.work);
        }
    }
}

/// Paths are absolute or below a root, and stages are earlier ones.
fn promises(stage: usize, work: &StepWork) {
    let is_clean = |path: &str| !path.split('/').any(|part| part == ".." || part == ".");
    let absolute = |path: &str| assert!(path.starts_with('/') && is_clean(path), "{path}");
    let below = |path: &str| assert!(!path.starts_with('/') && is_clean(path), "{path}");
    match work {
        StepWork::Run {
            directory, mounts, ..
        } => {
            absolute(directory);
            for mount in mounts {
                match mount {
                    RunMount::Cache { target, .. } | RunMount::Temporary { target, .. } => {
                        absolute(target);
                    }
                    RunMount::Bind {
                        from,
                        source,
                        target,
                        ..
                    } => {
                        absolute(target);
                        below(source);
                        assert!(!matches!(from, MountFrom::Stage(other) if *other >= stage));
                    }
                }
            }
        }
        StepWork::Copy {
            from,
            sources,
            destination,
            destination_is_directory,
            ..
        } => {
            absolute(destination);
            sources.iter().for_each(|source| below(source));
            assert!(!matches!(from, CopyFrom::Stage(other) if *other >= stage));
            if let CopyFrom::Inline(files) = from {
                assert!(sources.is_empty() && !files.is_empty());
                assert!(files.iter().all(|file| !file.name.contains('/')));
            } else {
                assert!(sources.len() < 2 || *destination_is_directory);
            }
        }
        StepWork::MakeDirectory { path, .. } => absolute(path),
        StepWork::Nothing => {}
    }
}

/// One of each line and mark that means something.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "FROM ", "RUN ", "COPY ", "ADD ", "ENV ", "ARG ", "WORKDIR ", "USER ", "CMD ", "SHELL ",
    "ENTRYPOINT ", "HEALTHCHECK ", "LABEL ", "VOLUME ", "EXPOSE ", "ONBUILD ", "STOPSIGNAL ",
    "MAINTAINER ", "CMD", "NONE", "AS ", "a", "b", "A=", "=", "$a", "${a", "${a:-", "}", "$",
    "\\", "`", "\\\n", "\\ \n", "`\n", "\n", "\r\n", "\r", "\t", " ", "#", "# escape=`\n",
    "# syntax=x\n", "<<", "<<E", "<<-E", "<<'E'", "3<<E", "\nE\n", "E", "<", "[", "]", "\"",
    "'", ",", "[\"a\", \"b\"]", "[]", "\\u0000", "--", "--from=", "--mount=", "type=cache",
    "type=bind", "target=", "source=", "from=", "--chown=", "--chmod=", "--link", "--platform=",
    "--interval=", "1m", "/", "..", "/..", ".", "*", "0", "1", "777", "é", "\u{feff}", "\u{a0}",
    "\0", "https://x/y",
];

/// Pieces that mean something, so that the way to deeper places is found.
fn piece() -> impl Strategy<Value = String> {
    let known = prop::sample::select(PIECES);
    prop_oneof![
        12 => known.prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "\\PC{0,8}",
    ]
}

fn pieces(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..most).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*|(?s:.*)") {
        ask(&text);
    }

    #[test]
    fn any_mixture_of_instructions_is_read_or_refused(text in pieces(40)) {
        ask(&text);
        ask(&format!("FROM a AS b\n{text}"));
        ask(&format!("# escape=`\nFROM a\nRUN {text}"));
    }

    #[test]
    fn any_end_of_an_instruction_is_read_or_refused(
        instruction in prop::sample::select(vec![
            "RUN", "COPY", "ADD", "ENV", "ARG", "WORKDIR", "USER", "CMD", "SHELL", "ENTRYPOINT",
            "HEALTHCHECK", "LABEL", "VOLUME", "EXPOSE", "FROM", "RUN --mount=type=cache,",
            "COPY --from=b", "HEALTHCHECK CMD", "RUN [", "COPY [", "COPY <<E", "RUN <<E",
        ]),
        space in prop::sample::select(vec!["", " ", "  \\\n "]),
        rest in pieces(8),
    ) {
        ask(&format!("FROM a AS b\nFROM c\n{instruction}{space}{rest}\nE\n"));
    }
}

#[test]
fn texts_of_the_longest_kind_are_read_quickly() {
    let begun = std::time::Instant::now();
    for piece in [
        "${", "${a:-", "\"", "'", "\\", "[", "<<", "<<E ", "$a", "a=\"b\" ", "--x ", "\\\n", "#\n",
        "\n", " ", "\t", "\u{feff}",
    ] {
        for before in [
            "",
            "FROM a\nRUN ",
            "FROM a\nCOPY ",
            "FROM a\nENV a=",
            "FROM a\nCMD [",
        ] {
            let count = (65_536 - before.len()) / piece.len();
            ask(&format!("{before}{}", piece.repeat(count)));
        }
    }
    // Many times what it takes; a square of the length would take hours.
    assert!(begun.elapsed().as_secs() < 120, "{:?}", begun.elapsed());
}
