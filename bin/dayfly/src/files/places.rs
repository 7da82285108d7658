//! The two sides of a copy.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Standard input or output.
    Standard,
    Local(PathBuf),
    Guest {
        /// An id, or the beginning of one.
        sandbox: String,
        path: String,
    },
}

impl FromStr for Place {
    type Err = Infallible;

    /// As `scp` reads it: a colon before any slash separates a sandbox from its path.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        if text == "-" {
            return Ok(Self::Standard);
        }
        Ok(match text.split_once(':') {
            Some((sandbox, path)) if !sandbox.is_empty() && !sandbox.contains('/') => Self::Guest {
                sandbox: sandbox.to_owned(),
                path: without_dots(path),
            },
            Some(_) | None => Self::Local(PathBuf::from(text)),
        })
    }
}

/// The same path without parts that lead nowhere. One at the end stays: `DIRECTORY/.` may mean its
/// content alone.
fn without_dots(path: &str) -> String {
    let mut tidy = path.to_owned();
    while let Some(at) = tidy.find("/./") {
        tidy.replace_range(at..at + 2, "");
    }
    while let Some(rest) = tidy.strip_prefix("./") {
        tidy = rest.to_owned();
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_no_parts_that_lead_nowhere() {
        for (given, kept) in [
            ("/workspace/./proj", "/workspace/proj"),
            ("./a/././b", "a/b"),
            ("./", ""),
            ("/a/.", "/a/."),
            ("/.hidden/x", "/.hidden/x"),
            (".", "."),
        ] {
            assert_eq!(without_dots(given), kept);
        }
    }

    fn place(text: &str) -> Place {
        text.parse().unwrap()
    }

    #[test]
    fn a_colon_before_any_slash_names_a_sandbox() {
        let guest = |sandbox: &str, path: &str| Place::Guest {
            sandbox: sandbox.to_owned(),
            path: path.to_owned(),
        };
        assert_eq!(place("sb-a:/x"), guest("sb-a", "/x"));
        assert_eq!(place("sb-a:/x:y"), guest("sb-a", "/x:y"));
        assert_eq!(place("-"), Place::Standard);
        for local in ["./a:/b", "/a:b", "a", ":/a"] {
            assert_eq!(place(local), Place::Local(PathBuf::from(local)));
        }
    }
}
