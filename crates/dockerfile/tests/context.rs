//! What is in a build context, and what a COPY takes from it.
#![expect(clippy::unwrap_used, reason = "a test without its patterns must fail")]

use dayfly_dockerfile::{ContextEntry, Ignored, InvalidIgnored, SelectError, select};
use proptest::prelude::*;

fn hidden(patterns: &str, path: &str) -> bool {
    Ignored::parse(patterns).unwrap().hides(path)
}

#[test]
fn patterns_hide_as_moby_hides() {
    let cases = [
        ("", "a", false),
        ("a", "a", true),
        ("a", "b/a", false),
        ("a", "a/b/c", true),
        ("/a", "a", true),
        ("a/", "a/b", true),
        ("./a/../b", "b", true),
        ("  a  ", "a", true),
        ("#a", "#a", false),
        (" #a", "#a", true),
        ("\\#a", "#a", true),
        ("a\r\nb\r\n", "a", true),
        ("\u{feff}a", "a", true),
        ("*", "a/b", true),
        ("*.md", "a.md", true),
        ("*.md", "a/b.md", false),
        ("*/b.md", "a/b.md", true),
        ("**/*.md", "a.md", true),
        ("**/*.md", "a/b/c.md", true),
        ("**/b", "a/bb", false),
        ("**/b", "b", true),
        ("**/b/**", "a/b/c", true),
        ("**/b/**", "a/b", false),
        ("a/**", "a", false),
        ("a/**", "a/b/c", true),
        ("a/**/c", "a/c", true),
        ("a/**/c", "a/b/b/c", true),
        ("a/**/c", "a/bc", false),
        ("a**", "abc/d", true),
        ("**b", "a/xb", true),
        ("**", "anything/at/all", true),
        ("a?c", "abc", true),
        ("a?c", "a/c", false),
        ("[a-c]x", "bx", true),
        ("[^a-c]x", "bx", false),
        ("a.b", "axb", false),
        ("a$(b)+{c}|", "a$(b)+{c}|", true),
        (".", "a", false),
        ("/", "a", false),
        ("..", "a", false),
        ("../a", "a", false),
        ("a/../../b", "b", false),
        // The last that matches decides.
        ("*\n!a", "a", false),
        ("!a\n*", "a", true),
        ("*.md\n!R*.md\nR-secret.md", "R.md", false),
        ("*.md\n!R*.md\nR-secret.md", "R-secret.md", true),
        ("a\n!a/b", "a/b/c", false),
        ("a\n!a/b", "a/c", true),
        ("a\n! a/b ", "a/b", false),
        ("**\n!a/b\na/b/*.o", "a/b/x.o", true),
        ("a\n!a\na/b", "a/b", true),
    ];
    for (patterns, path, expected) in cases {
        assert_eq!(hidden(patterns, path), expected, "{patterns:?} {path}");
    }
}

#[test]
fn a_directory_is_left_out_only_if_nothing_in_it_is_shown() {
    let cases = [
        ("a", "a", true),
        ("a", "b", false),
        ("a\n!b", "a", true),
        ("a\n!a/b", "a", false),
        ("a\n!a/b/c", "a/b", false),
        ("a\n!a/b/c", "a/d", true),
        ("a\n!a*", "a", false),
        ("a\n!ab", "a", true),
        ("a\n!**/x", "a", false),
        ("a\n!*/x", "a", false),
        ("a\n!*/x", "a/b", true),
        ("*\n!a/?", "a", false),
        ("*\n!a/?", "a/b", false),
        ("*\n!a/?", "a/bb", true),
    ];
    for (patterns, path, expected) in cases {
        let ignored = Ignored::parse(patterns).unwrap();
        assert_eq!(
            ignored.hides_all_below(path),
            expected,
            "{patterns:?} {path}"
        );
    }
}

#[test]
fn what_is_no_pattern_is_refused_with_its_line() {
    for text in ["a\n[", "a\n!", "a\n! ", "a\nb\\", "a\n[]x]"] {
        let error = Ignored::parse(text).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{text:?}: {error}");
    }
    let many = "a\n".repeat(1001);
    assert_eq!(Ignored::parse(&many), Err(InvalidIgnored::TooMany));
    let long = "#".repeat(70_000);
    assert!(matches!(
        Ignored::parse(&long),
        Err(InvalidIgnored::TooLong { .. })
    ));
}

/// Paths that end with a slash are directories.
fn entries(paths: &[&str]) -> Vec<ContextEntry> {
    let entry = |path: &&str| ContextEntry {
        path: path.trim_end_matches('/').to_owned(),
        is_directory: path.ends_with('/'),
    };
    paths.iter().map(entry).collect()
}

const TREE: [&str; 9] = [
    "a.txt", "b.txt", "d/", "d/a.txt", "d/e/", "d/e/f", "empty/", "x[1]", "z/",
];

fn selected(sources: &[&str], into_directory: bool) -> Result<Vec<(String, String)>, SelectError> {
    let sources: Vec<String> = sources.iter().map(|one| (*one).to_owned()).collect();
    let found = select(&entries(&TREE), &sources, into_directory)?;
    let pairs = found.into_iter().map(|one| (one.source, one.below));
    Ok(pairs.collect())
}

/// Sources, whether they go into a directory, and what goes where.
type Case<'a> = (&'a [&'a str], bool, Vec<(&'a str, &'a str)>);

#[test]
fn sources_go_where_docker_puts_them() {
    let everything: Vec<(&str, &str)> = [("", "")]
        .into_iter()
        .chain(TREE.map(|path| (path.trim_end_matches('/'), path.trim_end_matches('/'))))
        .collect();
    let d = vec![
        ("d", ""),
        ("d/a.txt", "a.txt"),
        ("d/e", "e"),
        ("d/e/f", "e/f"),
    ];
    let cases: [Case; 18] = [
        (&["a.txt"], false, vec![("a.txt", "")]),
        (&["a.txt"], true, vec![("a.txt", "a.txt")]),
        (&["d/a.txt"], true, vec![("d/a.txt", "a.txt")]),
        (&["/a.txt"], false, vec![("a.txt", "")]),
        (&["../../a.txt"], false, vec![("a.txt", "")]),
        // The contents of a directory, whichever way the destination is written.
        (&["d"], false, d.clone()),
        (&["d/"], true, d.clone()),
        (&["d/e"], false, vec![("d/e", ""), ("d/e/f", "f")]),
        (&["empty"], true, vec![("empty", "")]),
        (&[""], true, everything.clone()),
        (&["."], false, everything.clone()),
        (&[".."], true, everything),
        (
            &["?.txt"],
            true,
            vec![("a.txt", "a.txt"), ("b.txt", "b.txt")],
        ),
        (&["a*"], false, vec![("a.txt", "")]),
        (&["*/a.txt"], true, vec![("d/a.txt", "a.txt")]),
        (&["x[[]1]"], false, vec![("x[1]", "")]),
        // Directories that wildcards match give their contents too; the later file stays.
        (
            &["a.txt", "d*", "b.txt"],
            true,
            vec![
                ("d", ""),
                ("d/a.txt", "a.txt"),
                ("b.txt", "b.txt"),
                ("d/e", "e"),
                ("d/e/f", "e/f"),
            ],
        ),
        // One that matches nothing is fine beside one that does.
        (&["a.txt", "lock*"], true, vec![("a.txt", "a.txt")]),
    ];
    for (sources, into_directory, expected) in cases {
        let found = selected(sources, into_directory).unwrap();
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(source, below)| (source.as_str(), below.as_str()))
            .collect();
        assert_eq!(found, expected, "{sources:?}");
    }
}

#[test]
fn sources_that_cannot_be_copied_are_named() {
    let no_match: [&[&str]; 6] = [
        &["c.txt"],
        &["a.txt", "c.txt"],
        &["c*"],
        &["a"],
        &["d/e/f/g"],
        &["**/f"],
    ];
    for sources in no_match {
        let error = selected(sources, true).unwrap_err();
        let last = sources.last().unwrap();
        assert!(matches!(error, SelectError::NoMatch { .. }), "{sources:?}");
        assert!(error.to_string().contains(last), "{error}");
    }
    for sources in [&["?.txt"][..], &["a.txt", "b.txt"], &["d", "empty"], &["*"]] {
        let error = selected(sources, false).unwrap_err();
        assert!(
            matches!(error, SelectError::NeedsDirectory { .. }),
            "{sources:?}"
        );
    }
    // Directories alone are put over each other.
    assert!(selected(&["[dz]"], false).is_ok());
    let error = selected(&["x["], true).unwrap_err();
    assert!(matches!(error, SelectError::Pattern { .. }));
}

#[test]
fn a_name_is_a_file_or_a_directory() {
    let list = |text: &[&str]| text.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    let explicit = entries(&["a/", "a/x", "b/", "b/x/", "b/x/y"]);
    let implied = entries(&["a/x", "b/x/y"]);
    for entries in [explicit, implied] {
        for sources in [["a", "b"], ["b", "a"]] {
            let error = select(&entries, &list(&sources), true).unwrap_err();
            let below = "x".to_owned();
            assert_eq!(error, SelectError::Conflict { below });
        }
    }
}

fn path() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["a", "b", "ab", "c"]);
    prop::collection::vec(part, 1..5).prop_map(|parts| parts.join("/"))
}

fn pattern() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "c", "/", "*", "**", "?", "[ab]", "!", "\n", "\n!", "..", "\\", "[", " ", "#",
        "é",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_text_is_patterns_or_refused(text in "\\PC*|(?s:.*)", path in "\\PC*") {
        if let Ok(ignored) = Ignored::parse(&text) {
            prop_assert!(ignored.hides(&path) || !ignored.hides_all_below(&path));
        }
    }

    #[test]
    fn nothing_is_shown_in_a_directory_that_is_left_out(
        patterns in pattern(),
        directory in path(),
        rest in path(),
    ) {
        if let Ok(ignored) = Ignored::parse(&patterns)
            && ignored.hides_all_below(&directory)
        {
            let path = format!("{directory}/{rest}");
            prop_assert!(ignored.hides(&path), "{patterns:?} {path}");
        }
    }

    #[test]
    fn what_is_selected_is_there_and_stays_below_the_destination(
        paths in prop::collection::btree_set(path(), 1..8),
        sources in prop::collection::vec(pattern(), 1..3),
        into_directory in any::<bool>(),
    ) {
        let files = paths.iter().filter(|path| {
            let inside = format!("{path}/");
            !paths.iter().any(|other| other.starts_with(&inside))
        });
        let entries: Vec<ContextEntry> = files
            .map(|path| ContextEntry { path: path.clone(), is_directory: false })
            .collect();
        let Ok(found) = select(&entries, &sources, into_directory) else {
            return Ok(());
        };
        for one in found {
            let is_there = entries.iter().any(|entry| entry.path == one.source);
            prop_assert!(is_there || one.is_directory);
            prop_assert!(one.source.ends_with(&one.below) || one.below.is_empty());
            prop_assert!(!one.below.starts_with('/') && !one.below.contains(".."));
        }
    }
}
