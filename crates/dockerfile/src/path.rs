//! Paths as text: nothing here looks at a file.

use dayfly_types::limits::IMAGE_PATH_BYTES_MAX;

use crate::error::LineProblem;

/// The absolute path that `path` means in `directory`, without `.`, `..` and double slashes. The
/// parent of the root is the root.
pub(crate) fn absolute(directory: &str, path: &str) -> Result<String, LineProblem> {
    let parts = match path.starts_with('/') {
        true => clean(path),
        false => clean(&format!("{directory}/{path}")),
    };
    bounded(format!("/{parts}"))
}

/// The path below a root, without a slash before it; the root itself is empty. No path leads out.
pub(crate) fn below_root(path: &str) -> Result<String, LineProblem> {
    bounded(clean(path))
}

/// Whether somebody who writes this path means a directory.
pub(crate) fn means_directory(path: &str) -> bool {
    path.is_empty() || path == "." || path.ends_with('/') || path.ends_with("/.")
}

/// The parts of a path joined again, none of them empty, `.` or `..`.
pub(crate) fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn bounded(path: String) -> Result<String, LineProblem> {
    if path.len() > IMAGE_PATH_BYTES_MAX {
        return Err(LineProblem::TooMuch {
            what: "a path, in bytes,",
            limit: IMAGE_PATH_BYTES_MAX,
            instead: "use a shorter one",
        });
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_and_never_leave_the_root() {
        let cases = [
            ("/", "a", "/a"),
            ("/a", "b/c", "/a/b/c"),
            ("/a", "/b", "/b"),
            ("/a/b", "..", "/a"),
            ("/a", "../../..", "/"),
            ("/a", "./b//c/", "/a/b/c"),
            ("/", ".", "/"),
        ];
        for (directory, path, expected) in cases {
            assert_eq!(absolute(directory, path).unwrap(), expected, "{path}");
        }
        assert_eq!(below_root("/a/../../b").unwrap(), "b");
        assert_eq!(below_root(".").unwrap(), "");
        assert!(absolute("/", &"a".repeat(5000)).is_err());
    }

    #[test]
    fn a_slash_or_a_dot_at_the_end_means_a_directory() {
        for path in [".", "./", "a/", "/", "/a/.", ""] {
            assert!(means_directory(path), "{path}");
        }
        for path in ["a", "/a", "a.", ".."] {
            assert!(!means_directory(path), "{path}");
        }
    }
}
